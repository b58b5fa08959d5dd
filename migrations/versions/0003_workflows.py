"""Workflows: the state of their runs, and how they end."""

from __future__ import annotations

from pathlib import Path

from alembic import op
from sqlalchemy.util import await_only

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

FILES = ("workflow", "opening", "waiting", "pausing", "rerun")


def upgrade() -> None:
    op.execute("select 1")  # begins the transaction, which the driver's own connection then shares
    driver = op.get_bind().connection.driver_connection
    folder = Path(__file__).with_name("0003")
    for name in FILES:
        await_only(driver.execute(folder.joinpath(f"{name}.sql").read_text()))


def downgrade() -> None:
    op.execute("drop trigger execution_gone on execution")
    op.execute("delete from definition where kind = 'wait'")
    for name in (
        "rerun_execution",
        "keep_results",
        "workflow_state",
        "release_children",
        "hold_children",
        "hold_paused",
        "held_until",
        "complete_waits",
        "begin_waits",
        "execution_gone",
        "restage_workflows",
        "command_workflow",
        "stop_workflows",
        "finish_workflows",
        "start_children",
        "write_workflows",
        "task_records",
        "open_parents",
        "open_workflows",
        "make_workflows",
        "lock_workflows",
    ):
        op.execute(f"drop function {name}")
    for name in ("event_wait", "event_path", "paused_workflow", "workflow_kept", "workflow_command", "workflow_item",
                 "workflow_variable", "workflow_task", "workflow"):  # fmt: skip
        op.execute(f"drop table {name}")
