"""The example that `penstock demo` runs."""

from __future__ import annotations

import subprocess
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from penstock.language.definitions.importing import imported
from penstock.language.loading import Definitions, load
from tests.flows.installation import Installation

NOT_COMPLETED = """
select e.task, e.status, e.reason, r.error::text from execution e left join result r on r.execution_id = e.id
where e.status <> 'completed'
"""
FOLDER = Path(__file__).parents[2] / "examples/git_history"
CODE = """
class Shop:
    def buy(self, goods):
        for one in goods:
            if one and one.price > 3 or one.free:
                yield one
"""


@pytest.fixture(scope="module")
def definitions() -> Definitions:
    return load(FOLDER)


@pytest.fixture(scope="module")
def repository(definitions: Definitions) -> ModuleType:
    return imported("git_history.repository")


def git(folder: Path, *words: str) -> None:
    identity = [
        "-c",
        "user.name=Somebody",
        "-c",
        "user.email=somebody@example.org",
        "-c",
        "commit.gpgsign=false",
    ]
    subprocess.run(["git", *identity, *words], cwd=folder, check=True, capture_output=True)


@pytest.fixture
def history(tmp_path: Path) -> Path:
    """A repository of six commits; the last one deletes a file, the fourth changes a document only."""
    git(tmp_path, "init", "-q")
    for number, (name, text) in enumerate(
        [
            ("a.py", CODE),
            ("b.py", "x = 1\n" * 1500),
            ("a.py", "# nothing\n"),
            ("read me.md", "# Title\nthree words\n"),
        ]
    ):
        (tmp_path / name).write_text(text)
        git(tmp_path, "add", "-A")
        git(tmp_path, "commit", "-qm", f"Commit {number}")
    (tmp_path / "broken.py").write_text("def (:\n")
    git(tmp_path, "add", "-A")
    git(tmp_path, "commit", "-qm", "Break\tit")
    git(tmp_path, "rm", "-q", "b.py")
    git(tmp_path, "commit", "-qm", "Remove it")
    return tmp_path


def test_every_commit_is_a_payload_that_fits_the_trigger(
    definitions: Definitions, repository: ModuleType, history: Path
) -> None:
    words, payloads = repository.events(history, commits=200, files=400)
    assert "6 newest commits" in words
    assert [payload["subject"] for payload in payloads][:2] == ["Remove it", "Break\tit"]
    assert payloads[0]["python"] == []
    assert payloads[0]["deletions"] == 1500
    assert payloads[2]["documents"] == ["read me.md"]
    assert (payloads[4]["insertions"], payloads[4]["python"]) == (1500, ["b.py"])
    properties = set(definitions.triggers["git.commit"].payload_schema["properties"])
    assert all(set(payload) <= properties for payload in payloads), (
        "nothing but what the trigger declares: no authors"
    )


def test_the_newest_commits_win_where_there_are_too_many(repository: ModuleType, history: Path) -> None:
    assert len(repository.events(history, commits=5, files=400)[1]) == 5
    assert [payload["subject"] for payload in repository.events(history, commits=200, files=1)[1]][
        -1
    ] == "Commit 3"


def test_without_history_the_files_at_hand_will_do(repository: ModuleType, tmp_path: Path) -> None:
    for n in range(10):
        (tmp_path / f"m{n}.py").write_text("x = 1\n")
    (tmp_path / ".hidden").mkdir()
    (tmp_path / ".hidden/no.py").write_text("x = 1\n")
    words, payloads = repository.events(tmp_path, commits=200, files=400)
    assert "no git history" in words
    assert [len(payload["python"]) for payload in payloads] == [8, 2]
    assert repository.content(tmp_path, payloads[0]["sha"], "m0.py") == "x = 1\n"


def test_a_shallow_clone_is_looked_at_file_by_file(
    repository: ModuleType, history: Path, tmp_path: Path
) -> None:
    clone = tmp_path / "clone"
    git(tmp_path, "clone", "-q", "--depth", "1", f"file://{history}", str(clone))
    words, payloads = repository.events(clone, commits=200, files=400)
    assert "hardly any history" in words
    assert payloads[0]["python"] == ["a.py", "broken.py"]


def test_code_is_measured_by_its_syntax(definitions: Definitions) -> None:
    measure: Any = imported("git_history.python_source").measure
    counts = measure(CODE)
    assert (counts["functions"], counts["classes"]) == (1, 1)
    # one, and the loop, the condition, and its two operators
    assert counts["most_complex"] == {"name": "buy", "complexity": 5}
    assert "invalid syntax" in measure("def (:")["unreadable"]
    assert measure("")["functions"] == 0


async def test_events_become_a_report(
    definitions: Definitions, repository: ModuleType, history: Path, database: str
) -> None:
    _, payloads = repository.events(history, commits=200, files=400)
    async with Installation(database, None) as house:
        await house.start(*definitions)
        for payload in payloads:
            await house.client.publish("git.commit", payload)
        await house.until("select 1 from enforcement where status = 'executed' having count(*) = 7")
        await house.quiet()
        rows = await house.rows(
            "select rule, count(*) as count from enforcement group by 1 order by 1",
        )
        assert {row["rule"]: row["count"] for row in rows} == {
            "git.documents_only": 1,
            "git.large": 2,
            "git.python_changed": 4,
        }
        assert not [tuple(row) for row in await house.rows(NOT_COMPLETED)]
        await house.sound()
