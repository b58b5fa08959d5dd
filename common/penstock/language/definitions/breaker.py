"""Breakers, which stop the calls of an action while too many of them fail."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, ClassVar, Self

from pydantic import Field, model_validator

from penstock.language.terms.durations import PositiveDuration
from penstock.language.terms.options import Count, Options, Wrong
from penstock.language.terms.parameter_paths import KeyPaths

LARGEST_WINDOW = 10_000


class Breaker(Options):
    """`Breaker(20, of=50, within="1m", probe="30s")` opens when 20 of the last 50 attempts within a minute failed. While it is
    open, executions wait and keep their places. After the time `probe`, one execution starts as a probe. If it
    completes, the others follow gradually. If it fails, the breaker waits for `probe` again.

    Failed attempts and timeouts are failures, even if a retry follows. Cancelled, lost and deferred attempts do not
    count, and neither do refused parameters. Raises DefinitionError if a value is not valid."""

    thing: ClassVar[str] = "breaker"
    positional: ClassVar[tuple[str, ...]] = ("failures",)

    failures: Count
    """The number of failures that opens it."""
    of: Annotated[int, Field(ge=1, le=LARGEST_WINDOW)] | None = None
    """The number of the last attempts among which failures count. By default it is `failures`."""
    within: PositiveDuration = 60
    """The time for which an attempt counts."""
    probe: PositiveDuration = 30
    """The time from the opening, or from a failed probe, to the next probe."""
    by: KeyPaths = ()
    """Paths of parameters, and labels, such as `labels.host`. Each combination of their values has its own breaker."""
    counts_running: bool = False
    """A running call counts as a failure until it has ended. Then at most `failures` calls reach a service that is down
    before the breaker opens. It also limits the calls: with those that have failed, at most `failures` run at the same time."""

    if TYPE_CHECKING:

        def __init__(
            self,
            failures: int,
            *,
            of: int | None = None,
            within: float | str = 60,
            probe: float | str = 30,
            by: str | Sequence[str] = (),
            counts_running: bool = False,
        ) -> None: ...

    @model_validator(mode="after")
    def _reachable(self) -> Self:
        if self.failures > (self.of or LARGEST_WINDOW):
            raise Wrong(
                f"never opens: failures ({self.failures}) exceeds of ({self.of or LARGEST_WINDOW})",
                "Write failures=20, of=50.",
            )
        return self

    def thresholds(self) -> dict[str, float | bool]:
        """Return the thresholds with their defaults, as admission reads them."""
        return {
            "failures": self.failures,
            "of": self.of or self.failures,
            "within": self.within,
            "probe": self.probe,
            "counts_running": self.counts_running,
        }
