"""An interpreter of docs/breakers.md, and random plays for it. It reads no code and no table of the product.

Executions are numbers. Instants are of two kinds: `clock` counts the seconds that a play skips, and `tick` the transactions.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import NamedTuple

CUSTOMERS = "aab"
UNDER_WAY = ("scheduled", "running", "canceling")
MAX_LOSSES = 3
COUNTS_AS_FAILURE = {"failed": True, "timeout": True, "retried": True, "completed": False}
"""Of the ends of an attempt that count: whether each is a failure. All others count as neither."""
CALLS_WITHOUT_ANSWER = ("deferred", "cancelled")
"""The ends of an attempt that count as neither, although the service was called: after such a probe the next one waits."""
NEXT_STATUS = {"retried": "queued", "deferred": "queued", "refused": "failed"}
"""Of the ends that are not a status: the status that follows."""


class Options(NamedTuple):
    """The options of the breaker. Times are in seconds."""

    failures: int
    of: int
    within: int
    probe: int
    counts_running: bool


class Start(NamedTuple):
    """Executions of one customer that begin together: `is_submit` in one transaction."""

    customer: str
    numbers: tuple[int, ...]
    priority: int
    is_submit: bool


class Claim(NamedTuple):
    """A worker claims executions."""

    numbers: tuple[int, ...]


class End(NamedTuple):
    """Attempts that end in one transaction."""

    outcomes: tuple[tuple[int, str], ...]


class Lose(NamedTuple):
    """The worker of these attempts is lost."""

    numbers: tuple[int, ...]


class Cancel(NamedTuple):
    """A user cancels executions."""

    numbers: tuple[int, ...]


class Wait(NamedTuple):
    """Time passes."""

    seconds: int


class OpenByHand(NamedTuple):
    """A user opens a breaker. `seconds` is the time until its probe, or None."""

    customer: str
    seconds: int | None


class CloseByHand(NamedTuple):
    """A user closes a breaker, at once or gradually."""

    customer: str
    is_gradual: bool


Step = Start | Claim | End | Lose | Cancel | Wait | OpenByHand | CloseByHand


@dataclass
class Call:
    """An execution. `admitted` is the tick of its last admission."""

    number: int
    customer: str
    rank: int
    ready: int
    status: str = "queued"
    admitted: int = 0
    losses: int = 0

    @property
    def place(self) -> tuple[int, int, int]:
        return self.rank, self.ready, self.number


@dataclass
class Breaker:
    """The breaker of one customer. `opened` and `released` are ticks, `probe_at` is by the clock."""

    state: str = "closed"
    attempts: list[tuple[int, bool]] = field(default_factory=list)
    probe_at: float = 0
    allowed: int = 0
    passed: int = 0
    opened: int = 0
    released: int = 0


class Model:
    """All executions and breakers. `admissions` lists the numbers in the order of their admission; `rules` counts how often each
    rule of the page decided something."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self.clock = 0
        self.tick = 0
        self.calls: dict[int, Call] = {}
        self.breakers = {customer: Breaker() for customer in sorted(set(CUSTOMERS))}
        self.admissions: list[int] = []
        self.rules: Counter[str] = Counter()

    def numbers(self, *statuses: str, customer: str | None = None) -> list[int]:
        return [
            call.number
            for call in self.calls.values()
            if call.status in statuses and customer in (None, call.customer)
        ]

    def room(self, customer: str) -> float:
        """Return how many more calls may start now."""
        breaker = self.breakers[customer]
        if breaker.state == "open" and self.clock < breaker.probe_at:
            return 0
        at_most: float = inf if breaker.state == "closed" else breaker.allowed
        if self.options.counts_running:
            ended = [failed for at, failed in breaker.attempts if at > self.clock - self.options.within]
            at_most = min(at_most, self.options.failures - sum(ended))
        opened = 0 if breaker.state == "closed" else breaker.opened
        under_way = [self.calls[number] for number in self.numbers(*UNDER_WAY, customer=customer)]
        return max(at_most - sum(call.admitted >= opened for call in under_way), 0)

    def play(self, step: Step) -> None:
        """Play a step, and admit what may start after it."""
        self.tick += 1
        match step:
            case Start(customer, numbers, priority):
                for number in numbers:
                    self.calls[number] = Call(number, customer, -priority, self.tick)
            case Claim(numbers):
                for number in numbers:
                    self.calls[number].status = "running"
            case End(outcomes):
                self._end(outcomes)
            case Lose(numbers):
                self._lose(numbers)
            case Cancel(numbers):
                for number in numbers:
                    call = self.calls[number]
                    call.status = "canceling" if call.status == "running" else "cancelled"
            case Wait(seconds):
                self.clock += seconds
            case OpenByHand(customer, seconds):
                self._open(customer, inf if seconds is None else self.clock + seconds)
            case CloseByHand(customer, is_gradual):
                if is_gradual:
                    self._release(customer)
                else:
                    self.breakers[customer].state = "closed"
                self.breakers[customer].attempts = []
        self._admit(isinstance(step, Wait))

    def _admit(self, is_wait: bool) -> None:
        self.tick += 1
        for call in sorted((self.calls[number] for number in self.numbers("queued")), key=lambda c: c.place):
            if self.room(call.customer) > 0:
                self.rules["starts once a failure is too old to count"] += is_wait and (
                    self.breakers[call.customer].state == "closed"
                )
                call.status, call.admitted = "scheduled", self.tick
                self.admissions.append(call.number)
                self._note_probe(call)

    def _note_probe(self, probe: Call) -> None:
        breaker = self.breakers[probe.customer]
        if breaker.state == "open":
            older = set(self.numbers(*UNDER_WAY, customer=probe.customer)) - {probe.number}
            self.rules["a probe starts beside calls from before the opening"] += bool(older)

    def _open(self, customer: str, probe_at: float) -> None:
        breaker = self.breakers[customer]
        self.rules[f"opens while {breaker.state}"] += 1
        breaker.state, breaker.opened, breaker.probe_at = "open", self.tick, probe_at
        breaker.attempts, breaker.allowed, breaker.passed = [], 1, 0
        for number in self.numbers("scheduled", customer=customer):
            self.calls[number].status = "queued"
            self.rules["takes back what was admitted and not claimed"] += 1

    def _release(self, customer: str) -> None:
        breaker = self.breakers[customer]
        breaker.state, breaker.released, breaker.allowed, breaker.passed = "releasing", self.tick, 2, 0

    def _lose(self, numbers: Sequence[int]) -> None:
        for number in numbers:
            call = self.calls[number]
            call.losses += 1
            call.status = "queued" if call.losses <= MAX_LOSSES else "abandoned"
        self._count([(self.calls[number], None) for number in numbers])

    def _end(self, outcomes: Sequence[tuple[int, str]]) -> None:
        for number, outcome in outcomes:
            call = self.calls[number]
            call.status = NEXT_STATUS.get(outcome, outcome)
            if call.status == "queued":
                call.ready = self.tick
        unanswered = [self.calls[n] for n, outcome in outcomes if outcome in CALLS_WITHOUT_ANSWER]
        self._count(
            [(self.calls[number], COUNTS_AS_FAILURE.get(outcome)) for number, outcome in outcomes], unanswered
        )
        for customer, breaker in self.breakers.items():
            refused = sum(o == "refused" and self.calls[n].customer == customer for n, o in outcomes)
            failed = sum(is_failure for _, is_failure in breaker.attempts)
            self.rules["refused parameters do not open it"] += (
                breaker.state == "closed" and refused > 0 and failed + refused >= self.options.failures
            )

    def _count(self, ends: Sequence[tuple[Call, bool | None]], unanswered: Sequence[Call] = ()) -> None:
        """Count attempts that ended in one transaction, in the order of their executions."""
        for customer in sorted({call.customer for call, _ in ends}):
            breaker = self.breakers[customer]
            counted = sorted(
                ((call, failed) for call, failed in ends if call.customer == customer and failed is not None),
                key=lambda end: end[0].number,
            )
            if breaker.state == "open":
                probes = [end for end in counted if end[0].admitted >= breaker.opened]
                self._answer_probe(customer, probes)
                if not probes and any(
                    call.customer == customer and call.admitted >= breaker.opened for call in unanswered
                ):
                    breaker.probe_at = self.clock + self.options.probe
                    self.rules["a probe ends without an answer"] += 1
                self.rules["a call from before the opening fails while it is open"] += any(
                    failed and call.admitted < breaker.opened for call, failed in counted
                )
            else:
                if breaker.state == "releasing":
                    counted = [end for end in counted if end[0].admitted >= breaker.released]
                self._judge(customer, [failed for _, failed in counted])

    def _answer_probe(self, customer: str, ends: Sequence[tuple[Call, bool]]) -> None:
        if any(failed for _, failed in ends):
            self.breakers[customer].probe_at = self.clock + self.options.probe
            self.rules["a probe fails"] += 1
        elif ends:
            self._release(customer)
            self.rules["a probe completes"] += 1

    def _judge(self, customer: str, failed: Sequence[bool]) -> None:
        """Open, close or widen a breaker that is not open."""
        breaker = self.breakers[customer]
        breaker.attempts += [(self.clock, is_failure) for is_failure in failed]
        last = breaker.attempts[-self.options.of :]
        recent = [attempt for attempt in last if attempt[0] > self.clock - self.options.within]
        self.rules["a failure is too old to count"] += (
            sum(is_failure for _, is_failure in last)
            >= self.options.failures
            > sum(is_failure for _, is_failure in recent)
        )
        breaker.attempts = recent
        if sum(is_failure for _, is_failure in recent) >= self.options.failures:
            self._open(customer, self.clock + self.options.probe)
        elif breaker.state == "releasing":
            breaker.passed += failed.count(False)
            if not self.numbers("queued", customer=customer):
                breaker.state = "closed"
                self.rules["closes, as none waits"] += 1
            elif breaker.passed >= breaker.allowed:
                breaker.allowed, breaker.passed = breaker.allowed * 2, 0
                self.rules[f"lets {min(breaker.allowed, 8)} calls start"] += 1


UP = {"completed": 10, "deferred": 1, "refused": 2, "failed": 4}
DOWN = {"failed": 5, "retried": 5, "timeout": 2, "refused": 2, "completed": 2, "deferred": 1}
"""How often attempts end in each way while the service of a customer works, and while it does not."""


def options(dice: random.Random) -> Options:
    """Return options with small thresholds. The sum of some waits is never near `within` or `probe`: the real clock goes on."""
    failures = dice.choice([1, 2, 2, 3])
    of, within, probe = failures + dice.randint(0, 3), dice.choice([850, 2350]), dice.choice([450, 950])
    return Options(failures, of, within, probe, counts_running=dice.random() < 0.4)


def steps(dice: random.Random, model: Model, count: int) -> Iterator[Step]:
    """Yield random steps that fit the state of the model. The caller plays each before it asks for the next."""
    is_down = {customer: dice.random() < 0.5 for customer in model.breakers}
    for _ in range(count):
        for customer in is_down:
            if dice.random() < 0.1:
                is_down[customer] = not is_down[customer]
        yield _step(dice, model, is_down)


def _step(dice: random.Random, model: Model, is_down: dict[str, bool]) -> Step:
    customer = dice.choice(CUSTOMERS)
    open_, scheduled, running = (
        model.numbers(*statuses)
        for statuses in (("queued", "scheduled", "running"), ("scheduled",), ("running", "canceling"))
    )
    kinds = {
        "start": 2 if len(open_) < 30 else 0,
        "claim": 4 * bool(scheduled),
        "end": 4 * bool(running),
        "lose": 0.5 * bool(model.numbers("running")),
        "cancel": 0.5 * bool(open_),
        "wait": 3 + 2 * any(breaker.state == "open" for breaker in model.breakers.values()),
        "open": 0.15,
        "close": 0.4 * (model.breakers[customer].state != "closed"),
    }
    match dice.choices(list(kinds), list(kinds.values()))[0]:
        case "start":
            first = len(model.calls)
            numbers = tuple(range(first, first + dice.randint(1, 8)))
            return Start(customer, numbers, dice.choice([0, 0, 0, 2]), dice.random() < 0.5)
        case "claim":
            return Claim(_some(dice, scheduled, 6))
        case "end":
            return End(
                tuple(
                    (number, _outcome(dice, model.calls[number], is_down))
                    for number in _some(dice, running, 4)
                )
            )
        case "lose":
            return Lose(_some(dice, model.numbers("running"), 2))
        case "cancel":
            return Cancel(_some(dice, open_, 2))
        case "open":
            return OpenByHand(customer, dice.choice([None, 1150]))
        case "close":
            return CloseByHand(customer, dice.random() < 0.6)
        case _:
            return Wait(dice.choice([100, 300, 500, 1000]))


def _some(dice: random.Random, numbers: Sequence[int], at_most: int) -> tuple[int, ...]:
    return tuple(sorted(dice.sample(numbers, dice.randint(1, min(at_most, len(numbers))))))


def _outcome(dice: random.Random, call: Call, is_down: dict[str, bool]) -> str:
    if call.status == "canceling":
        return "cancelled"
    weights = DOWN if is_down[call.customer] else UP
    return dice.choices(list(weights), list(weights.values()))[0]
