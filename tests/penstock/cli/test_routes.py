"""`penstock routes`: which there are, why something takes one, and what is amiss with them."""

from __future__ import annotations

from pathlib import Path

from penstock import Route, action
from penstock.language.terms.ids import new_id
from penstock.language.workflows import from_yaml
from penstock.store.session.database import Session
from tests.flows.installation import Installation
from tests.penstock.cli.commands import penstock


@action(pack="ml")
async def train() -> None: ...


@action(pack="ml", route="gppu")
async def tune() -> None: ...


NIGHTLY = from_yaml("""
workflow: ml.nightly
tasks:
  first: {action: ml.train}
  second: {action: ml.tune}
  third: {action: ml.train, route: heavy}
  ask: {inquiry: {prompt: "Go on?"}}
""")
RULES = (Route("public::ml::*::first", "gpu"), Route("ml::*", "cpu"), Route("**", "rest"))


async def hire(session: Session, *routes: str) -> None:
    await session.fetch(
        "insert into process (id, kind, name, routes) values ($1, 'worker', 'w', $2) returning 1",
        new_id(),
        list(routes),
    )


async def route_of(session: Session, namespace: str) -> str:
    """Return the route to which the placement of executions sends it."""
    [row] = await session.fetch("select queue from namespace where name = $1", namespace)
    return str(row["queue"]).removeprefix("work.")


async def test_where_something_goes_and_why(house: Installation) -> None:
    await house.apply(train, tune, NIGHTLY, *RULES)
    await hire(house.session, "cpu", "gpu")
    expected = {
        "ml.train": ("cpu", "ml::*", ["public::ml::*::first"]),
        "acme::ml::train": ("cpu", "ml::*", ["public::ml::*::first"]),
        "ml.tune": ("gppu", None, None),
        "public::ml::nightly::first": ("gpu", "public::ml::*::first", []),
        "public::ml::nightly::second": ("gppu", None, None),
        "public::ml::nightly::third": ("heavy", None, None),
    }
    for what, (route, rule, before) in expected.items():
        said = (await penstock("routes", "explain", what, "--json")).document
        assert (said["route"], said["rule"]) == (route, rule), what
        assert before is None or [one["pattern"] for one in said["passed_over"]] == before, what
    await house.client.start("ml.train")
    await house.client.start("ml.train", tenant="acme")
    await house.client.start("ml.tune")
    placed = [
        await route_of(house.session, name)
        for name in ("public::ml::train", "acme::ml::train", "public::ml::tune")
    ]
    assert placed == ["cpu", "cpu", "gppu"]
    said = await penstock("routes", "explain", "ml.train")
    assert "public::ml::train -> cpu (pattern 'ml::*' matches)" in said.out
    assert "not 'public::ml::*::first' -> gpu" in said.out
    assert "Workers that serve cpu: 1." in said.out
    assert "Did you mean 'ml.train'?" in (await penstock("routes", "explain", "ml.trian")).err
    assert "no task 'fourth'" in (await penstock("routes", "explain", "public::ml::nightly::fourth")).err
    assert "has no route" in (await penstock("routes", "explain", "public::ml::nightly::ask")).err


async def test_a_rule_that_is_removed_routes_nothing_any_more(house: Installation) -> None:
    await house.apply(train, *RULES)
    await house.client.start("ml.train")
    assert await route_of(house.session, "public::ml::train") == "cpu"
    assert "Did you mean 'ml::*'?" in (await penstock("routes", "remove", "ml:::*")).err
    assert (await penstock("routes", "remove", "ml::*")).code == 0
    assert await route_of(house.session, "public::ml::train") == "rest"
    rules = [one for one in (await penstock("routes", "list", "--json")).documents if one["kind"] == "rule"]
    assert [one["pattern"] for one in rules] == ["public::ml::*::first", "**"]


async def test_a_route_without_workers_is_warned_of(house: Installation, tmp_path: Path) -> None:
    module = tmp_path / "warned.py"
    module.write_text(
        "from penstock import action\n\n"
        "@action(pack='warned', route='gppu')\nasync def train() -> None: ...\n\n"
        "@action(pack='warned', route='far')\nasync def walk() -> None: ...\n"
    )
    assert (
        "warning" not in (await penstock("apply", module)).err
    )  # no worker lives yet: workers may start later
    await hire(house.session, "gpu")
    warned = (await penstock("apply", module)).err
    assert "no live worker serves the route gppu (action warned.train). Did you mean 'gpu'?" in warned
    assert "penstock worker --module FILE --routes far" in warned
    routes = {one["route"]: one for one in (await penstock("routes", "list", "--json")).documents}
    assert {name: (one["workers"], one["amiss"], one["meant"]) for name, one in routes.items()} == {
        "default": (0, True, None),
        "far": (0, True, None),
        "gppu": (0, True, "Did you mean 'gpu'?"),
        "gpu": (1, True, "Did you mean 'gppu'?"),
    }
    found = {one["what"]: one for one in (await penstock("doctor", "--json")).documents}
    assert found["route gpu"]["says"] == "1 worker serves it, but no definition names it"
    assert (
        found["route gppu"]["says"]
        == "no live worker serves this route, but it is named by action warned.train"
    )
