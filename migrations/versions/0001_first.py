"""The first schema: tables, moves, and one function for each step in the life of an execution."""

from __future__ import annotations

from pathlib import Path

from alembic import op
from sqlalchemy.util import await_only

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

FILES = (
    "tables", "kept", "partitions", "stage", "moves", "request", "schedule", "keys", "promote", "admission", "release",
    "changes", "presence", "claim", "finish", "end",
    "heartbeat", "due", "submit", "event", "restage", "inquiry",
)  # fmt: skip

MOVES = {
    "requested": "scheduling queued scheduled running waiting cancelled failed timeout skipped",
    "scheduling": "requested queued scheduled cancelled failed timeout",
    "queued": "requested scheduled running cancelled failed timeout skipped",
    "scheduled": "requested running cancelled failed timeout skipped",
    "running": "requested waiting canceling completed failed timeout cancelled abandoned skipped",
    "waiting": "requested running completed failed timeout cancelled skipped",
    "canceling": "cancelled completed failed timeout",
}


def upgrade() -> None:
    folder = Path(__file__).parent / "0001"
    op.execute("select 1")  # begins the transaction, which the driver's own connection then shares
    driver = op.get_bind().connection.driver_connection
    for name in FILES:
        await_only(driver.execute(folder.joinpath(f"{name}.sql").read_text()))
    rows = ", ".join(f"('{old}', '{new}')" for old, news in MOVES.items() for new in news.split())
    op.execute(f"insert into legal_move (old, new) values {rows}")
    op.execute("select make_partitions(7)")
    op.execute("analyze legal_move")


def downgrade() -> None:
    raise RuntimeError("The first schema has no predecessor: drop the database (or its schema) instead.")
