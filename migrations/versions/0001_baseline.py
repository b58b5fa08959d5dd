"""The baseline: tables, types and data. The functions are in migrations/functions."""

from __future__ import annotations

from pathlib import Path

from alembic import op
from sqlalchemy.util import await_only

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

FILES = (
    "applied", "types", "definitions", "executions", "limits", "messages", "events", "history", "schedules", "workflows",
    "polls", "steps", "access", "secrets", "subscriptions", "people", "figures", "data",
)  # fmt: skip


def upgrade() -> None:
    folder = Path(__file__).parent / "0001"
    op.execute("select 1")  # begins the transaction, which the driver's own connection then shares
    driver = op.get_bind().connection.driver_connection
    for name in FILES:
        await_only(driver.execute(folder.joinpath(f"{name}.sql").read_text()))


def downgrade() -> None:
    raise RuntimeError(
        "A schema is never downgraded: the release before runs on this one too. Or restore a backup."
    )
