"""Two releases side by side: this one, and one that comes after it, made from it with another schema and functions."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from tests.crash.processes import ROOT, python_path

NEXT = "999.1"
VERSION = '''"""What the next release adds."""

from alembic import op

revision = "9999"
down_revision = "{last}"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("alter table execution add column note text")
    op.execute("create table remark (execution_id uuid primary key, note text not null)")


def downgrade() -> None:
    raise RuntimeError("A schema is never downgraded.")
'''


def next_release(home: Path, last: str) -> Path:
    """A copy of this release, below `home`, that stands for the one after it: a revision more after `last`, a table and a
    column more, every function of the database in another text, and a function more. It writes a field more into each
    part of the state of a workflow."""
    for part in ("common", "services", "migrations"):
        shutil.copytree(ROOT / part, home / part, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
    (home / "migrations/versions/9999_next.py").write_text(VERSION.format(last=last))
    for function in (home / "migrations/functions").rglob("*.sql"):
        function.write_text(f"{function.read_text()}-- As of the next release.\n")
    (home / "migrations/functions/outbox/noted.sql").write_text(
        "-- A function that only the next release calls.\n"
        "create or replace function noted() returns integer\nlanguage sql\nas $$\n    select 1\n$$;\n"
    )
    _edit(
        home / "common/penstock/store/schema/functions.py", 'return version("penstock")', f'return "{NEXT}"'
    )
    state = home / "common/penstock/engine/state.py"
    for last_field in (
        "    error: Any = None\n\n\n@dataclass(slots=True)\nclass WorkflowState",
        "    failures: list[int] = field(default_factory=list)\n",
        "    cancelled: int = 0\n",
        "    error: Any = None\n\n    @property\n    def final",
    ):
        _edit(state, last_field, last_field.replace("\n", "\n    noted: int = 1\n", 1))
    stored = home / "common/penstock/engine/serialization.py"
    _edit(stored, '"stops": state.stops,', '"stops": state.stops,\n        "noted": state.noted,')
    _edit(stored, "_DEFAULT = TaskState()", "_DEFAULT = TaskState(noted=0)")
    return home


def migrate(release: Path, environment: Mapping[str, str]) -> None:
    """`penstock migrate` of a release. Raises CalledProcessError where it fails."""
    subprocess.run(
        [sys.executable, "-m", "penstock", "migrate"],
        env={**environment, "PYTHONPATH": python_path(release)},
        check=True,
        stdout=subprocess.DEVNULL,
        timeout=60,
    )


def _edit(file: Path, old: str, new: str) -> None:
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new))
