"""The answer to why an execution waits, and the wording of its parts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal
from uuid import UUID

from penstock.language.moves import CANCELING, QUEUED, REQUESTED, RUNNING, SCHEDULED, WAITING
from penstock.store.executions.executions import Execution

Reason = Literal[
    "limit", "rate", "breaker", "regroup", "worker", "route", "timer", "message", "outage", "task", "dependency", "paused",
    "held", "inquiry", "event", "outside", "running", "stopping", "ended",
]  # fmt: skip
"""The causes. limit, rate: a slot, or the next start that a rate permits; breaker: a
breaker is open, or counts running calls; regroup: its limits changed; worker: no
live worker can run it; route: workers that can are busy, or about to claim it; timer: a retry, a deferral, a delay;
message: an executor is about to handle it; outage: no process can; task: a workflow's own tasks; dependency: other
tasks of its workflow; held: a hold; outside: a system that completes it."""

OTHER_ROUTE = "Give the child another route, or run it with `ctx.run` or in a workflow."
"""The way out for an attempt that keeps its slot of a worker while it waits for a child of the same route."""
RUNS_CHILD = "runs"
WAITS_FOR_CHILD = "waits for"
ONLY_FOR_CHILD = (RUNS_CHILD, WAITS_FOR_CHILD)
"""The clauses of an execution that waits for nothing besides its child."""


@dataclass(frozen=True, slots=True)
class Why:
    """The answer. `because` is one word for programs. `own` is its clause, without a subject, such as `waits for the signal
    paid`; it ends before the name of `child`, if there is one. `details` are further sentences, and `facts` the values behind
    all of them. `path` leads through the executions inside to the one that waits for none, which has the answer `cause`."""

    id: UUID
    status: str
    because: Reason
    own: str
    facts: Mapping[str, Any]
    details: Sequence[str] = ()
    child: Child | None = None
    path: Sequence[Step] = ()
    cause: Why | None = None

    @property
    def sentence(self) -> str:
        """Return what the execution waits for. If it only waits for another one, the sentence is about that one."""
        if self.child is None:
            return as_sentence(self.own)
        if self.own in ONLY_FOR_CHILD and self.cause is not None:
            return self._sentence_of_cause(self.cause)
        return as_sentence(f"{self.own} {self._name_of_cause}")

    @property
    def _name_of_cause(self) -> str:
        """Return the name of the task or step that the execution waits for in the end: `task 'approve'`."""
        if self.child is None:
            return ""
        if not self.path:
            return f"{self.child.kind} {self.child.name!r}"
        return f"{self.path[-1].kind} {'.'.join(step.name for step in self.path)!r}"

    def _sentence_of_cause(self, cause: Why) -> str:
        return as_sentence(f"{self._name_of_cause} {cause.own}")

    @property
    def all_details(self) -> list[str]:
        """Return the details of this answer, and then those of its cause."""
        if self.cause is None:
            return list(self.details)
        cause_text = [] if self.own in ONLY_FOR_CHILD else [self._sentence_of_cause(self.cause)]
        see = f"See {self._name_of_cause} with: penstock show {self.cause.id}"
        causes = self.cause.all_details
        # A function that waits for a child has waited as long as the child. The child's sentence says so, and also when
        # it times out.
        own = [
            d
            for d in self.details
            if not (d.startswith(WAITED) and any(c.startswith(WAITED) for c in causes))
        ]
        return [*own, *cause_text, see, *causes]

    @property
    def says(self) -> str:
        """Return the sentence and the details as one text."""
        return " ".join([self.sentence, *self.all_details])

    def with_cause(self, path: Sequence[Step], cause: Why) -> Why:
        """Return the answer with its cause, to which `path` leads."""
        return replace(self, path=path, cause=cause)

    def with_detail(self, detail: str, **facts: Any) -> Why:
        """Return the answer with a further sentence, and the values behind it."""
        return replace(self, details=[*self.details, detail], facts={**self.facts, **facts})

    def document(self) -> dict[str, Any]:
        """Return the answer as JSON."""
        facts = {name: value for name, value in self.facts.items() if value is not None}
        if self.cause is not None:
            cause = self.cause.document()
            facts["path"] = [asdict(step) for step in self.path]
            facts["cause"] = {name: cause[name] for name in ("id", "status", "because", "facts")}
        return {
            "id": self.id,
            "status": self.status,
            "because": self.because,
            "sentence": self.sentence,
            "details": self.all_details,
            "says": self.says,
            "facts": facts,
        }

    def of_one_tenant(self) -> Why:
        """Return the answer without its facts about other executions, which may belong to another tenant."""
        if self.cause is not None:
            return replace(self, cause=self.cause.of_one_tenant())
        if not self.facts.get("holders"):
            return self
        facts = {name: value for name, value in self.facts.items() if name != "holders"}
        return replace(
            self, details=(f"This execution is {ordinal(facts['position'])} in line.",), facts=facts
        )


@dataclass(frozen=True, slots=True)
class Child:
    """An execution that another one waits for: as a task of a workflow or a step of a durable function, and its name. `way`
    leads from there to the execution inside that waits for none."""

    id: UUID
    kind: Literal["task", "step"]
    name: str
    way: Sequence[UUID] = ()


@dataclass(frozen=True, slots=True)
class Step:
    """A step on the way to a cause: the execution of a task or step `name`, which belongs to an execution of the action
    `inside`."""

    id: UUID
    kind: Literal["task", "step"]
    name: str
    inside: str


def why_of(
    row: Execution, because: Reason, own: str, *details: str, child: Child | None = None, **facts: Any
) -> Why:
    return Why(row.id, row.status, because, own, facts, details, child)


def as_sentence(clause: str) -> str:
    """Return a clause as a sentence: with a capital letter, and a full stop unless it ends with a mark."""
    ending = "" if clause.endswith((".", "?", "!", "…")) else "."
    return f"{clause[:1].upper()}{clause[1:]}{ending}"


WAITED = "It has waited for "
"""The beginning of the sentence about the length of a wait."""
URGENCY = (WAITING, REQUESTED, QUEUED, SCHEDULED, CANCELING, RUNNING)
"""The statuses of executions inside another one. One that waits for something else is named before one that runs, and so ends
by itself."""
DEEPEST = 20
"""The maximum number of executions, each inside the one before, on the way to a cause."""


def span(seconds: float | None) -> str:
    """Return a length of time as text: 35 ms, 1.2 s, 45 s, 5 min, 3 h, 2 d."""
    length = max(0.0, seconds or 0.0)
    if length < 0.9995:
        return f"{length * 1000:.0f} ms"
    if length < 10:
        return f"{length:.1f} s"
    for unit, size, limit in (("s", 1, 100), ("min", 60, 100 * 60), ("h", 3600, 48 * 3600)):
        if length < limit:
            return f"{length / size:.0f} {unit}"
    return f"{length / 86400:.0f} d"


def count(number: int, noun: str, plural: str | None = None) -> str:
    """Return a number with its noun: `1 worker`, `3 workers`."""
    return f"{number} {noun if number == 1 else plural or noun + 's'}"


def ordinal(number: int) -> str:
    """Return an ordinal number: `1st`, `12th`, `23rd`."""
    ending = "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"
