"""The virtual time of a play, and the real time limit of its test."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest

from tests.durable_programs import statements as s
from tests.durable_programs.interpreter import Interpreter
from tests.durable_programs.kit_run import play_in_kit
from tests.durable_programs.statements import Program


class TimeLimitOver(BaseException):
    """The error that the alarm of a test's time limit raises."""


@pytest.fixture(autouse=True)
def _alarm() -> Iterator[None]:
    def over(*_: object) -> None:
        raise TimeLimitOver

    before = signal.signal(signal.SIGALRM, over)
    limit = signal.getitimer(signal.ITIMER_REAL)
    yield
    signal.signal(signal.SIGALRM, before)
    signal.setitimer(signal.ITIMER_REAL, *limit)


@pytest.mark.parametrize("statement", [s.Step(), s.Sleep(), s.Block((s.Step(), s.Signal()))])
def test_time_limit_of_a_test_is_no_failed_attempt(
    statement: s.Statement, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The alarm comes while the function of a durable run goes on. Its error has to leave the play: the run would count it as
    a failed attempt, and complete in the next one."""
    play = Interpreter.play

    async def at_last(self: Interpreter, *what: object) -> object:
        value = await play(self, *what)  # type: ignore[arg-type]
        os.kill(os.getpid(), signal.SIGALRM)
        return value

    monkeypatch.setattr(Interpreter, "play", at_last)
    with pytest.raises(TimeLimitOver):
        play_in_kit(Program(statement, attempts=2))
