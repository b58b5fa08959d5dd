"""Schedules and their fires."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from alembic import op
from sqlalchemy.util import await_only

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

FILES = ("tables", "fire", "waiting", "settle", "moves", "partitions")


def upgrade() -> None:
    folder = Path(__file__).parent / "0002"
    op.execute("select 1")  # begins the transaction, which the driver's own connection then shares
    driver: Any = op.get_bind().connection.driver_connection
    for name in FILES:
        await_only(driver.execute(folder.joinpath(f"{name}.sql").read_text()))
    op.execute("select make_partitions(7)")


def downgrade() -> None:
    raise RuntimeError("Fires are an audit that a downgrade would destroy: restore a backup instead.")
