from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.errors import ConfigurationError, DefinitionError, MissingExtra, NoExecutor
from penstock.language.definitions import action
from penstock.language.loading import Definitions
from penstock.language.terms.executor_names import BUILT_IN, PACKAGES, refuse_unknown_executors
from penstock.run.executor_registry import REGISTERED, register_executor
from penstock.run.task_executors import attempt
from penstock.service.assembly import Stop
from penstock.settings import Settings
from penstock.testing.scenarios import ScenarioAction
from penstock_worker import executors as registry
from penstock_worker import main as worker
from penstock_worker.executors import EXECUTORS, build, chosen, executors
from penstock_worker.executors.python.thread import ThreadExecutor
from tests.flows.installation import Installation
from tests.kit.packages import write_package
from tests.penstock_worker.executors.runs import run_of
from tests.penstock_worker.executors.victims import own_pid


@pytest.fixture(autouse=True)
def nothing_registered() -> Iterator[None]:
    """Keep the executors of other tests out of these."""
    others = dict(REGISTERED)
    REGISTERED.clear()
    yield
    REGISTERED.clear()
    REGISTERED.update(others)


async def test_the_executors_of_a_worker_are_open_and_capture_output() -> None:
    def action() -> None:
        print("printed")
        logging.getLogger("shop").info("sold")

    async with executors(Settings(concurrency=3)) as found:
        assert sorted(found) == ["async", "command", "http", "process", "thread"]
        assert all(each.metrics().available == 3 for each in found.values())
        run, lines = run_of(action)
        await attempt(chosen(found, run.action), run)
    assert lines == [("stdout", "printed"), ("log", "INFO shop: sold")]


def test_coroutines_go_to_async_and_functions_to_threads_unless_they_say_otherwise() -> None:
    found = build(3, {})
    assert chosen(found, ScenarioAction("a.b", is_coroutine=True)).name == "async"
    assert chosen(found, ScenarioAction("a.b")).name == "thread"
    assert chosen(found, ScenarioAction("a.b", executor="process")).name == "process"
    with pytest.raises(NoExecutor, match="'gpu'"):
        chosen(found, ScenarioAction("a.b", executor="gpu"))


def test_executors_can_be_configured_left_out_and_added() -> None:
    own = "penstock_worker.executors.python.thread:ThreadExecutor"
    found = build(3, {"thread": {"capacity": 7}, "command": None, "gpu": {"class": own, "capacity": 1}})
    assert found["thread"].metrics().available == 7
    assert found["async"].metrics().available == 3
    assert "command" not in found
    assert isinstance(found["gpu"], ThreadExecutor)


@pytest.mark.parametrize(
    ("configured", "message"),
    [
        ({"gpu": {}}, "no task executor 'gpu'"),
        ({"gpu": {"class": "no.such.module:Gpu"}}, "cannot be loaded"),
        ({"gpu": {"class": "penstock.errors:Gpu"}}, "cannot be loaded"),
        ({"thread": {"capasity": 3}}, "capasity"),
        ({"thread": {"capacity": 0}}, "at least 1"),
        ({"http": {"allow": ["a/b"]}}, "allow-list"),
    ],
)
def test_a_wrong_configuration_is_refused_at_the_start(
    configured: dict[str, dict[str, object]], message: str
) -> None:
    with pytest.raises(ConfigurationError, match=message):
        build(3, configured)


def test_names_are_given_once() -> None:
    names = [name for name, _ in EXECUTORS]
    assert len(set(names)) == len(names)
    assert [executor.name for executor in build(1, {"kubernetes": {}}).values()] == names


def test_a_package_brings_an_executor_for_workers_that_name_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = "from penstock_worker.executors.python.thread import ThreadExecutor\n\nclass Slurm(ThreadExecutor): ..."
    write_package(tmp_path, "acme_slurm", code, "penstock.executors", "slurm = acme_slurm:Slurm")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert "slurm" not in build(3, {})
    configured = build(3, {"slurm": {"capacity": 2}})["slurm"]
    assert (type(configured).__name__, configured.metrics().available) == ("Slurm", 2)
    own = "penstock_worker.executors.python.process:ProcessExecutor"
    assert type(build(3, {"slurm": {"class": own}})["slurm"]).__name__ == "ProcessExecutor"


@pytest.mark.parametrize("name", PACKAGES)
def test_an_executor_without_its_package_names_the_package(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registry, "ENTRY_POINTS", "penstock.nothing")
    with pytest.raises(MissingExtra, match=f"pip install '.*/extras/penstock-{name}'$"):
        build(3, {name: {"address": "auto"}})
    assert name not in build(3, {})
    refuse_unknown_executors([ScenarioAction("a.b", executor=name)], ())
    register_executor(name, ThreadExecutor)
    with pytest.raises(ConfigurationError, match=f"Penstock itself has a task executor '{name}'"):
        build(3, {})


async def test_a_worker_may_replace_the_default_executor() -> None:
    process = "penstock_worker.executors.python.process:ProcessExecutor"
    async with executors(Settings(), {"thread": {"class": process}}) as found:
        run, _ = run_of(own_pid)
        outcome = await attempt(chosen(found, run.action), run)
    assert outcome.result_json is not None
    assert int(outcome.result_json) != os.getpid()


async def test_a_route_cannot_have_an_executor_that_is_not_there() -> None:
    settings = Settings(route_executors={"heavy": "nothing"})
    with pytest.raises(
        ConfigurationError, match="the setting for the route heavy names the task executor 'nothing'"
    ):
        async with executors(settings):
            pass


def test_the_names_that_definitions_are_checked_against_are_those_that_workers_have() -> None:
    assert tuple(name for name, _ in EXECUTORS) == BUILT_IN


@action(pack="odd", executor="docker")
def in_a_container() -> None: ...


async def test_an_action_with_an_unknown_executor_is_refused(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with Installation(database, None) as house:
        with pytest.raises(DefinitionError, match="there is no task executor 'docker'") as caught:
            await house.apply(in_a_container)
    assert "action odd.in_a_container" in caught.value.message
    assert "PENSTOCK_EXECUTORS" in str(caught.value.hint)
    monkeypatch.setattr(worker, "load_all", lambda _: Definitions([in_a_container]))
    with pytest.raises(DefinitionError, match="'docker'"):
        await worker.serve(house.settings(), Stop())
    refuse_unknown_executors([in_a_container], {"docker": None})
