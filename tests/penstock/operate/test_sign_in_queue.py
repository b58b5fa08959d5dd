"""The line of log-ins: its order, its bounds, and that no place outlives its caller."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import AsyncIterator

import pytest

from penstock.errors import NotAuthenticated, TooManyAttempts
from penstock.operate import sign_in_queue
from penstock.operate.sign_in_queue import LogInLine


class Crowd:
    """Log-ins in a line, whose turns end when the test says so."""

    def __init__(self) -> None:
        self.line = LogInLine()
        self.begun: list[str] = []
        self.ends: dict[str, asyncio.Future[None]] = {}
        self.tasks: dict[str, asyncio.Task[None]] = {}

    async def come(self, label: str, name: str, address: str) -> None:
        async def log_in() -> None:
            async with self.line.turn(name, address):
                self.begun.append(label)
                await self.ends[label]

        self.ends[label] = asyncio.get_running_loop().create_future()
        self.tasks[label] = asyncio.create_task(log_in())
        for _ in range(3):
            await asyncio.sleep(0)

    async def end(self, label: str, error: Exception | None = None) -> None:
        if error is None:
            self.ends[label].set_result(None)
        else:
            self.ends[label].set_exception(error)
        await asyncio.wait([self.tasks[label]])
        for _ in range(3):
            await asyncio.sleep(0)

    def refused(self, label: str) -> bool:
        task = self.tasks[label]
        return task.done() and isinstance(task.exception(), TooManyAttempts)

    async def close(self) -> None:
        for task in self.tasks.values():
            task.cancel()
        await asyncio.wait(self.tasks.values())


@pytest.fixture
async def crowd() -> AsyncIterator[Crowd]:
    crowd = Crowd()
    yield crowd
    await crowd.close()


async def test_address_without_failures_goes_first(crowd: Crowd) -> None:
    await crowd.come("a", "x", "bad")
    await crowd.end("a", NotAuthenticated("wrong"))
    await crowd.come("b", "x", "worse")
    for n in range(2):
        await crowd.come(f"busy-{n}", "x", f"new-{n}")
    # "b" was first, and "worse" has no failure yet: two of the three are under way
    await crowd.come("c", "x", "bad")
    await crowd.come("right", "ada", "home")
    assert crowd.begun == ["a", "b", "busy-0"]
    await crowd.end("b", NotAuthenticated("wrong"))
    await crowd.end("busy-0")
    assert crowd.begun == ["a", "b", "busy-0", "busy-1", "right"]


async def test_line_is_bounded_by_name_address_and_length(
    crowd: Crowd, monkeypatch: pytest.MonkeyPatch
) -> None:
    for n in range(sign_in_queue.OF_NAME_AND_ADDRESS + 1):
        await crowd.come(f"same-{n}", "ada", "one")
    assert [crowd.refused(f"same-{n}") for n in range(3)] == [False, False, True]
    for n in range(sign_in_queue.OF_ADDRESS):
        await crowd.come(f"name-{n}", f"name-{n}", "one")
    assert sum(crowd.refused(f"name-{n}") for n in range(sign_in_queue.OF_ADDRESS)) == 2
    for n in range(sign_in_queue.WAITING):
        await crowd.come(f"far-{n}", "x", f"far-{n}")
    assert len(crowd.line) == sign_in_queue.WAITING
    assert not any(crowd.refused(f"far-{n}") for n in range(sign_in_queue.WAITING))
    assert (
        sum(crowd.refused(f"name-{n}") for n in range(sign_in_queue.OF_ADDRESS)) == sign_in_queue.OF_ADDRESS
    )
    await crowd.come("last", "x", "last")
    assert crowd.refused("last")


async def test_full_line_refuses_the_worst_address_for_a_new_one(crowd: Crowd) -> None:
    for n in range(sign_in_queue.AT_ONCE):
        await crowd.come(f"busy-{n}", "x", f"busy-{n}")
    for _ in range(3):
        for name in ("u", "u", "u"):
            await crowd.come("guess", name, "attacker")
    for n in range(sign_in_queue.WAITING - len(crowd.line)):
        await crowd.come(f"far-{n}", "x", f"far-{n}")
    await crowd.come("right", "ada", "home")
    assert not crowd.refused("right")
    assert len(crowd.line) == sign_in_queue.WAITING


async def fill(crowd: Crowd, addresses: int, each: int) -> list[str]:
    """Let log-ins from addresses without failures wait behind two that are under way. Return what waits, in order."""
    for n in range(sign_in_queue.AT_ONCE):
        await crowd.come(f"busy-{n}", "x", f"busy-{n}")
    labels = [f"flood-{n}-{turn}" for turn in range(each) for n in range(addresses)]
    for label in labels:
        _, address, turn = label.split("-")
        await crowd.come(label, f"name-{turn}", f"far-{address}")
    return labels


async def test_new_address_waits_for_one_of_each_other(crowd: Crowd) -> None:
    """No address has failed yet. The line is full of second log-ins, of which one makes room for the first of another."""
    labels = await fill(crowd, addresses=sign_in_queue.WAITING // 2, each=2)
    await crowd.come("right", "ada", "home")
    assert not crowd.refused("right")
    assert [label for label in labels if crowd.refused(label)] == [labels[-1]]
    while "right" not in crowd.begun:
        under_way = next(label for label in crowd.begun if not crowd.tasks[label].done())
        await crowd.end(under_way, NotAuthenticated("wrong"))
    assert [label for label in crowd.begun if label.endswith("-1")] == ["busy-1"]


async def test_full_line_refuses_an_address_before_it_is_read(crowd: Crowd) -> None:
    """An address is refused so where its log-in would be, and no other address is."""
    assert not crowd.line.refuses("far-0")
    await crowd.come("before", "ada", "home")
    await crowd.end("before")
    await fill(crowd, addresses=sign_in_queue.WAITING // 2, each=2)
    assert crowd.line.refuses("far-0")
    assert not crowd.line.refuses("home"), "ada may come from there"
    assert not crowd.line.refuses("new"), "it goes before second log-ins"
    await crowd.come("third", "name-3", "far-0")
    assert crowd.refused("third")
    await crowd.come("new", "x", "new")
    assert not crowd.refused("new")


async def test_address_with_all_its_places_is_refused_before_it_is_read(crowd: Crowd) -> None:
    for n in range(sign_in_queue.OF_ADDRESS):
        await crowd.come(f"name-{n}", f"name-{n}", "one")
    assert crowd.line.refuses("one")
    await crowd.end("name-0")
    assert not crowd.line.refuses("one")


async def test_address_is_known_while_a_name_of_it_is(crowd: Crowd, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sign_in_queue, "REMEMBERED_LOG_INS", 2)
    for label, name in (("a", "ada"), ("b", "ada"), ("c", "eve"), ("d", "max")):
        await crowd.come(label, name, "home")
        await crowd.end(label)
    for n in range(sign_in_queue.MISTAKES):
        assert crowd.line._known_addresses["home"] == 2
        await crowd.come(f"wrong-{n}", "eve", "home")
        await crowd.end(f"wrong-{n}", NotAuthenticated("wrong"))
    assert crowd.line._known_addresses["home"] == 1


async def test_newcomer_of_a_flood_takes_no_place_of_another(crowd: Crowd) -> None:
    """All addresses have failed about as often. The one with a failure less is no better than those that wait."""
    for n in range(sign_in_queue.AT_ONCE):
        await crowd.come(f"busy-{n}", "x", f"busy-{n}")
    for n in range(sign_in_queue.WAITING):
        crowd.line._failures[f"far-{n}"] = 9
        await crowd.come(f"flood-{n}", "x", f"far-{n}")
    crowd.line._failures["last"] = 8
    assert crowd.line.refuses("last")


async def test_known_name_goes_first_in_a_flood_of_fresh_addresses(crowd: Crowd) -> None:
    await crowd.come("before", "ada", "home")
    await crowd.end("before")
    await fill(crowd, addresses=sign_in_queue.WAITING, each=1)
    await crowd.come("right", "ada", "home")
    await crowd.end("busy-0")
    assert crowd.begun == ["before", "busy-0", "busy-1", "right"]


async def test_known_name_with_wrong_passwords_goes_first_no_longer(crowd: Crowd) -> None:
    await crowd.come("before", "eve", "home")
    await crowd.end("before")
    for n in range(sign_in_queue.MISTAKES):
        await crowd.come(f"wrong-{n}", "eve", "home")
        await crowd.end(f"wrong-{n}", NotAuthenticated("wrong"))
    await fill(crowd, addresses=1, each=1)
    await crowd.come("again", "eve", "home")
    await crowd.end("busy-0")
    assert crowd.begun[-1] == "flood-0-0"


async def test_log_ins_cancelled_together_leave_the_line(crowd: Crowd) -> None:
    """Two turns end while the tasks of those that wait next are cancelled, and have not run yet."""
    labels = await fill(crowd, addresses=4, each=1)
    for label in ("busy-0", "busy-1", *labels[:3]):
        crowd.tasks[label].cancel()
    await asyncio.wait([crowd.tasks[label] for label in ("busy-0", "busy-1", *labels[:3])])
    assert all(crowd.tasks[label].cancelled() for label in ("busy-0", "busy-1", *labels[:3]))
    assert crowd.begun[2:] == labels[3:]
    assert not len(crowd.line)


async def test_counts_of_a_line_stay_those_of_its_places(
    crowd: Crowd, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The counts that `refuses` keeps equal a count of all places, after each of some random steps."""
    monkeypatch.setattr(sign_in_queue, "WAITING", 12)
    steps, line = random.Random(7), crowd.line
    for n in range(400):
        address = f"a{steps.randrange(6)}"
        under_way = [label for label in crowd.begun if not crowd.tasks[label].done()]
        match steps.randrange(4):
            case 0 if under_way:
                await crowd.end(steps.choice(under_way), steps.choice([None, NotAuthenticated("wrong")]))
            case 1 if waiting := [label for label, task in crowd.tasks.items() if not task.done()]:
                crowd.tasks[steps.choice(waiting)].cancel()
                await asyncio.sleep(0)
            case 2:
                line.refuses(address)
            case _:
                await crowd.come(str(n), f"n{steps.randrange(4)}", address)
        places = Counter(place.address for place in (*line._waiting, *line._under_way))
        assert line._places == places
        if line._waiting:
            assert line._worst() == max(line._ranks().values())
