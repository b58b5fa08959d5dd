"""Workflows: the state of their runs, and how they end."""

from __future__ import annotations

from pathlib import Path

from alembic import op
from sqlalchemy.util import await_only

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("select 1")  # begins the transaction, which the driver's own connection then shares
    driver = op.get_bind().connection.driver_connection
    await_only(driver.execute(Path(__file__).with_name("0003").joinpath("workflow.sql").read_text()))


def downgrade() -> None:
    op.execute("drop trigger execution_gone on execution")
    for name in (
        "execution_gone",
        "restage_workflows",
        "command_workflow",
        "stop_workflows",
        "finish_workflows",
        "lock_workflows",
    ):
        op.execute(f"drop function {name}")
    for name in ("workflow_command", "workflow_item", "workflow_variable", "workflow_task", "workflow"):
        op.execute(f"drop table {name}")
