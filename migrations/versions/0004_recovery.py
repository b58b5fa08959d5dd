"""Poll triggers, and mends of what `penstock check` finds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from alembic import op
from sqlalchemy.util import await_only

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

FILES = ("poll", "repair", "plans")


def upgrade() -> None:
    folder = Path(__file__).parent / "0004"
    op.execute("select 1")  # begins the transaction, which the driver's own connection then shares
    driver: Any = op.get_bind().connection.driver_connection
    for name in FILES:
        await_only(driver.execute(folder.joinpath(f"{name}.sql").read_text()))


def downgrade() -> None:
    raise RuntimeError("What poll triggers remember would be lost: restore a backup instead.")
