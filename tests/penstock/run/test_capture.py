from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from penstock.run import capture
from penstock.run.calls import call
from tests.penstock_worker.executors.runs import run_of


@contextmanager
def installed() -> Iterator[None]:
    """Not a fixture: pytest replaces the streams between the set-up of a test and its call."""
    uninstall = capture.install()
    try:
        yield
    finally:
        uninstall()


async def test_lines_printed_and_logged_by_a_run_are_its_own() -> None:
    async def action() -> None:
        print("to", end=" ")
        print("out")
        sys.stderr.writelines(["to ", "err\n"])
        logging.getLogger("shop").info("sold %d", 7)
        logging.getLogger("shop").debug("not kept")

    run, lines = run_of(action)
    with installed():
        await call(run)
    assert lines == [("stdout", "to out"), ("stderr", "to err"), ("log", "INFO shop: sold 7")]


async def test_runs_at_the_same_time_do_not_hear_each_other() -> None:
    async def action(word: str) -> None:
        for _ in range(3):
            print(word)
            await asyncio.sleep(0)

    runs = [run_of(action, {"word": word}) for word in ("left", "right")]
    with installed():
        await asyncio.gather(*(call(run) for run, _ in runs))
    assert [line for _, line in runs[0][1]] == ["left"] * 3
    assert [line for _, line in runs[1][1]] == ["right"] * 3


async def test_an_error_that_is_logged_comes_with_its_traceback() -> None:
    async def action() -> None:
        try:
            raise KeyError("lost")
        except KeyError:
            logging.getLogger("shop").exception("it happened")

    run, lines = run_of(action)
    with installed():
        await call(run)
    assert lines[0] == ("log", "ERROR shop: it happened")
    assert lines[-1] == ("log", "KeyError: 'lost'")


def test_lines_printed_outside_of_runs_go_to_stdout(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with installed():
        print("hello")
        sys.stdout.flush()
    assert capsys.readouterr().out == "hello\n"


def test_uninstalling_leaves_nothing_behind() -> None:
    before = sys.stdout, sys.stderr, list(logging.getLogger().handlers), logging.getLogger().level
    capture.install()()
    assert (sys.stdout, sys.stderr, list(logging.getLogger().handlers), logging.getLogger().level) == before


async def test_the_replaced_streams_still_look_like_streams() -> None:
    async def action() -> list[object]:
        return [sys.stdout.isatty(), sys.stdout.encoding, sys.stdout.writable()]

    with installed():
        assert (await call(run_of(action)[0])).result == [False, sys.stdout.encoding, True]


@pytest.mark.parametrize("is_older_first", [True, False])
async def test_output_stays_redirected_until_the_last_worker_ends(is_older_first: bool) -> None:
    """In `penstock dev` a worker begins before the one before it has ended its attempts."""

    async def action() -> None:
        print("out")
        logging.getLogger("shop").info("sold")

    stdout, level = sys.stdout, logging.getLogger().level
    uninstalls = [capture.install(), capture.install(mask=lambda piece: piece.replace("tok", "***"))]
    first, second = uninstalls if is_older_first else reversed(uninstalls)
    try:
        for _ in range(2):
            run, lines = run_of(action)
            await call(run)
            assert lines == [("stdout", "out"), ("log", "INFO shop: sold")]
            first, _ = (lambda: None), first()
    finally:
        second()
    assert (sys.stdout, logging.getLogger().level) == (stdout, level)
