"""The place where the embedded server may live, and the user under which it runs."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from penstock.errors import ConfigurationError
from penstock.service import embedded
from penstock.service.embedded import account, binaries, place, postmaster
from tests.servers.process import new_folder, remove


@pytest.fixture
def closed() -> Iterator[Path]:
    """A folder that only we may enter, as /root is."""
    outer = new_folder("closed")
    inner = outer / "closed"
    inner.mkdir(mode=0o700)
    yield inner
    remove(outer)


def test_the_server_never_runs_as_root_and_no_user_is_created_for_it() -> None:
    folder = new_folder("embedded")
    users = Path("/etc/passwd").read_bytes()
    server = embedded.start(folder)
    pid = postmaster.pid_of(server.folder / "data")
    assert pid is not None
    assert psutil.Process(pid).uids().effective != 0
    assert Path("/etc/passwd").read_bytes() == users
    assert (server.folder / "socket").stat().st_mode & 0o077 == 0
    server.release()
    remove(folder)


def test_a_folder_that_the_server_cannot_enter_is_replaced_by_one_that_it_can(closed: Path) -> None:
    folder = closed / "deep" / "data"
    server = embedded.start(folder)
    server.release()
    if os.geteuid() == 0:
        assert server.folder.parent == place.FOR_ROOT
        assert (folder / "elsewhere").resolve() == server.folder
        assert place.find(folder).folder == server.folder
        remove(server.folder)
    else:
        assert server.folder == folder


def test_programs_that_the_server_cannot_run_where_they_are_get_copied(closed: Path) -> None:
    found = binaries.find()
    tree = found.folder.parent
    shutil.copytree(tree, closed / tree.parent.name / tree.name, symlinks=True)
    libraries = tree.parent.parent / f"{binaries.WHEEL}.libs"
    if libraries.is_dir():
        shutil.copytree(libraries, closed / libraries.name)
    original = binaries.inspect(closed / tree.parent.name / tree.name / "bin")
    assert original is not None
    target = new_folder("copy")
    runner = account.for_server(target / "data")
    usable = binaries.reachable(original, runner, target)
    assert runner.executes(usable.postgres)
    assert runner.executes(usable.initdb)
    assert (usable == original) == (os.geteuid() != 0)
    assert binaries.reachable(original, runner, target) == usable
    remove(target)


def test_a_folder_that_cannot_be_made_is_explained() -> None:
    with pytest.raises(ConfigurationError, match="cannot be used"):
        embedded.start(Path("/dev/null/penstock"))


def test_programs_of_the_major_version_that_the_data_needs_are_found() -> None:
    newest = binaries.find()
    assert newest.major >= binaries.OLDEST_MAJOR
    assert binaries.find(major=newest.major) == newest
    with pytest.raises(ConfigurationError, match="PostgreSQL 9"):
        binaries.find(major=9)


def test_a_server_of_nowhere_is_not_stopped() -> None:
    assert not embedded.stop(Path("/nonexistent/penstock"))
