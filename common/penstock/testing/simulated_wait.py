"""The execution of a task that waits for the answer of a human, or for an event."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from penstock.errors import ExpressionError
from penstock.language.moves import COMPLETED, WAITING
from penstock.language.rules.event_filter import matches
from penstock.language.terms.waits import INQUIRY
from penstock.testing.world import EventWait, Execution, Question


class WaitExecution(Execution):
    """The execution of a wait. Its parameters are those of `penstock.language.terms.waits`."""

    def begin(self) -> None:
        self.status = WAITING
        self._begin_step(self.call.ref, status=WAITING)
        params = self.call.parameters
        if self.call.ref == INQUIRY:
            self.world.ask(Question(self, params, self._complete), params.get("timeout"))
        else:
            self.world.event_waits.append(EventWait(self, self._fits, self._complete))
            self.limit(params.get("timeout"))

    def _fits(self, event: Mapping[str, Any]) -> bool:
        """Return whether an event ends the wait. An event for which the filter raises an error does not."""
        params = self.call.parameters
        try:
            bound: Mapping[str, Any] = params.get("bound") or {}
            return params["trigger"] == event["trigger"] and matches(params.get("filter"), bound, event)
        except ExpressionError:
            return False

    def _complete(self, value: Any) -> None:
        self._end_step(COMPLETED, value)
        self.end(COMPLETED, value)
