"""Failures as they come: a run that takes minutes, or is interrupted, has already shown them."""

from __future__ import annotations

import pytest

LINES = 30
"""The end of a failure; the whole stands at the end of the run."""


class FailuresAtOnce:
    """A plugin that prints the end of each failure when its test has ended."""

    def __init__(self, terminal: pytest.TerminalReporter) -> None:
        self._terminal = terminal

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if not report.failed:
            return
        self._terminal.ensure_newline()
        self._terminal.write_sep("-", f"{report.when} failed: {report.nodeid}", red=True)
        for line in report.longreprtext.splitlines()[-LINES:]:
            self._terminal.write_line(line)
        self._terminal.flush()  # also where it is a pipe
