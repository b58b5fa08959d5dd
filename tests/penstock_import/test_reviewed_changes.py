"""Changes of meaning that no line named, each with the smallest source that shows it."""

from __future__ import annotations

import contextvars
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from celery.app.defaults import _TO_NEW_KEY, SETTING_KEYS

from penstock.run.context import CURRENT
from penstock.testing import Simulation
from penstock_import.applied import keep_applicable
from penstock_import.celery import CeleryProject
from penstock_import.celery_setting_names import MAPPED, is_read
from penstock_import.project import Project
from penstock_import.report import Report
from penstock_import.stackstorm import StackStormPack

APP = "from celery import Celery\napp = Celery('depot')\n"
SHELL: dict[str, Any] = {
    "name": "act",
    "runner_type": "local-shell-cmd",
    "parameters": {"cmd": {"type": "string", "required": True}},
}


def of_pack(folder: Path, files: dict[str, Any]) -> tuple[Project, Report]:
    """Return what is made of the pack `depot` with these files, and the report."""
    for name, content in {
        "pack.yaml": {
            "ref": "depot",
            "name": "depot",
            "description": "Pens.",
            "version": "1.0.0",
            "author": "Pat",
        },
        **files,
    }.items():
        (folder / "depot" / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / "depot" / name).write_text(
            content if isinstance(content, str) else yaml.safe_dump(content, sort_keys=False)
        )
    source = StackStormPack(folder / "depot")
    project = source.mapped()
    keep_applicable(project, source.report)
    return project, source.report


def of_application(folder: Path, files: dict[str, str]) -> tuple[Project, Report]:
    """Return the project that is imported from the application `depot` with these files, and the report."""
    for name, text in files.items():
        (folder / "depot" / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / "depot" / name).write_text(text)
    source = CeleryProject(folder / "depot")
    project = source.mapped()
    keep_applicable(project, source.report)
    return project, source.report


def simulated(folder: Path, files: dict[str, Any]) -> tuple[Simulation, Report]:
    """Return a simulation of what is made of the pack `depot` with these files, and the report."""
    project, report = of_pack(folder, files)
    project.write(folder / "ours", "", report)
    return Simulation(str(folder / "ours")), report


def texts(report: Report) -> list[str]:
    return [f"{gap.file}:{gap.line} {gap.what} | {gap.by_hand}" for gap in report.gaps]


def named(report: Report, start: str) -> bool:
    return any(text.startswith(start) for text in texts(report))


@pytest.mark.parametrize("command", ["sleep 3000", "trap '' TERM; sleep 3000 & wait; sleep 3000"])
def test_command_ends_with_its_attempt(tmp_path: Path, command: str) -> None:
    """A thread cannot be killed, so the function itself has to end the command."""
    project, _ = of_pack(tmp_path, {"actions/act.yaml": SHELL})
    module: dict[str, Any] = {}
    exec(project.python(), module)
    run = SimpleNamespace(cancelled=False, items=None)
    begun = tmp_path / "begun"
    errors: list[BaseException] = []

    def act() -> None:
        CURRENT.set(run)  # type: ignore[arg-type]  # only these two are read
        try:
            module["act_"](cmd=f"echo begun; touch {begun}; {command}")
        except module["ActionTimedOut"] as error:
            errors.append(error)

    thread = threading.Thread(target=contextvars.copy_context().run, args=(act,), daemon=True)
    thread.start()
    while thread.is_alive() and not begun.exists():
        thread.join(0.01)
    run.cancelled = True
    thread.join(60)
    assert [error.result["stdout"] for error in errors] == ["begun"]  # type: ignore[attr-defined]


def test_time_limit_without_command_ends_a_process(tmp_path: Path) -> None:
    python = {"name": "act", "runner_type": "python-script", "entry_point": "act.py"}
    project, _ = of_pack(tmp_path, {"actions/act.yaml": python})
    assert (project.actions["act"]["timeout"], project.actions["act"]["executor"]) == (600, "process")
    task = "@app.task(time_limit=9)\ndef weigh(): ...\n@app.task\ndef bill(): ...\n"
    project, _ = of_application(tmp_path, {"tasks.py": APP + task})
    assert (project.actions["weigh"]["timeout"], project.actions["weigh"]["executor"]) == (9, "process")
    assert "executor" not in project.actions["bill"]
    project, _ = of_application(tmp_path, {"tasks.py": APP + task + "app.conf.task_time_limit = 5\n"})
    assert (project.actions["bill"]["timeout"], project.actions["bill"]["executor"]) == (5, "process")


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("actions", SHELL),
        ("rules", {"name": "act", "trigger": {"type": "depot.seen"}, "action": {"ref": "core.noop"}}),
        ("triggers", {"name": "act"}),
        ("policies", {"name": "act", "policy_type": "action.retry", "resource_ref": "depot.act"}),
        ("aliases", {"name": "act"}),
    ],
)
def test_definition_of_another_pack_is_refused(tmp_path: Path, kind: str, body: dict[str, Any]) -> None:
    project, report = of_pack(tmp_path, {f"{kind}/act.yaml": {"pack": "else", **body}})
    assert named(report, f"{kind}/act.yaml:1 the pack else of act, which lies in the pack depot")
    assert (project.actions, project.rules, project.triggers) == ({}, {}, {})
    assert (report.found[kind], report.mapped[kind]) == (1, 0)


def test_policy_of_refused_workflow_is_named(tmp_path: Path) -> None:
    head = {"name": "flow", "runner_type": "orquesta", "entry_point": "workflows/flow.yaml"}
    flow = {"tasks": {"one": {"action": "depot.act"}}}  # without the parameter that it requires
    policy = {
        "name": "alone",
        "resource_ref": "depot.flow",
        "policy_type": "action.concurrency",
        "parameters": {"threshold": 1},
    }
    files = {
        "actions/act.yaml": SHELL,
        "actions/flow.yaml": head,
        "actions/workflows/flow.yaml": flow,
        "policies/alone.yaml": policy,
    }
    project, report = of_pack(tmp_path, files)
    assert "flow" not in project.workflows
    assert named(report, "policies/alone.yaml:1 the policy alone of flow, which Penstock refuses")
    assert (report.found["policies"], report.mapped["policies"]) == (1, 0)


CHAIN = {"name": "flow", "runner_type": "action-chain", "entry_point": "workflows/flow.yaml"}


def test_result_of_action_chain_is_named(tmp_path: Path) -> None:
    head = {"name": "outer", "runner_type": "orquesta", "entry_point": "workflows/outer.yaml"}
    read = {"publish": [{"url": "<% result().published.url %>"}], "do": "noop"}
    files = {
        "actions/flow.yaml": CHAIN,
        "actions/workflows/flow.yaml": {"chain": [{"name": "one", "ref": "core.noop"}]},
        "actions/outer.yaml": head,
        "actions/workflows/outer.yaml": {"tasks": {"one": {"action": "depot.flow", "next": [read]}}},
    }
    _, report = of_pack(tmp_path, files)
    assert named(report, "actions/workflows/flow.yaml:1 the result of the action chain flow")
    assert any(
        "the result of one, an action chain or a Mistral workflow, which has no such result in Penstock"
        in text
        for text in texts(report)
    )


def test_parameter_of_unknown_type_is_named(tmp_path: Path) -> None:
    rule = {
        "name": "seen",
        "trigger": {"type": "depot.seen"},
        "action": {"ref": "other.thing", "parameters": {"id": "{{ trigger.id }}", "fixed": "a"}},
    }
    told = rule | {
        "name": "told",
        "action": {"ref": "core.echo", "parameters": {"message": "{{ trigger.id }}"}},
    }
    chain = {"chain": [{"name": "one", "ref": "other.thing", "parameters": {"id": "{{ crate }}"}}]}
    files = {
        "triggers/seen.yaml": {"name": "seen"},
        "rules/seen.yaml": rule,
        "rules/told.yaml": told,
        "actions/flow.yaml": CHAIN | {"parameters": {"crate": {"type": "integer"}}},
        "actions/workflows/flow.yaml": chain,
    }
    project, report = of_pack(tmp_path, files)
    unknown = [text for text in texts(report) if "whose type is not known" in text]
    assert sorted(text.partition(",")[0] for text in unknown) == [
        "actions/workflows/flow.yaml:5 the parameter id",
        "rules/seen.yaml:7 the parameter id",
    ]
    assert project.rules["told"]["params"] == {"message": "{{ payload.id | string }}"}


@pytest.mark.parametrize(
    ("line", "is_foreign"),
    [
        ("from elsewhere.celery import *", True),
        ("from elsewhere.more import CELERY_TASK_ACKS_LATE", True),
        ("from elsewhere.more import os", False),
        ("from .base import *", False),
        ("from depot.settings.base import *", False),
    ],
)
def test_settings_of_another_package_are_named(tmp_path: Path, line: str, is_foreign: bool) -> None:
    files = {
        "celery.py": APP + "app.config_from_object('django.conf:settings', namespace='CELERY')\n",
        "tasks.py": "from .celery import app\n@app.task\ndef weigh(): ...\n",
        "__init__.py": "",
        "settings/__init__.py": "",
        "settings/base.py": "DEBUG = False\n",
        "settings/live.py": f"{line}\n",
    }
    _, report = of_application(tmp_path, files)
    assert named(report, "settings/live.py:1 the settings that") == is_foreign, texts(report)


def test_null_takes_the_default_of_a_required_parameter(tmp_path: Path) -> None:
    page = {"type": "integer", "required": True, "default": 1}
    python = {"name": "act", "runner_type": "python-script", "entry_point": "act.py"}
    project, _ = of_pack(tmp_path, {"actions/act.yaml": python | {"parameters": {"page": page}}})
    assert project.actions["act"]["parameters"]["page"] == {"type": ["integer", "null"], "default": 1}


def test_soft_time_limit_is_told_as_it_is_here(tmp_path: Path) -> None:
    task = "from celery.exceptions import SoftTimeLimitExceeded\n"
    task += "@app.task(soft_time_limit=9, autoretry_for=(SoftTimeLimitExceeded,))\ndef weigh(): ...\n"
    _, report = of_application(tmp_path, {"tasks.py": APP + task})
    assert named(report, "tasks.py:4 autoretry_for with SoftTimeLimitExceeded, which Penstock never raises")
    assert any("SIGTERM" in text for text in texts(report))
    assert report.mapped["tasks"] == 0


def test_missing_action_is_told_by_where_it_should_be(tmp_path: Path) -> None:
    refs = ["depot.nowhere", "core.inject_trigger", "other.thing"]
    files: dict[str, Any] = {"triggers/seen.yaml": {"name": "seen"}}
    for number, ref in enumerate(refs):
        files[f"rules/r{number}.yaml"] = {
            "name": f"r{number}",
            "trigger": {"type": "depot.seen"},
            "action": {"ref": ref},
        }
    _, report = of_pack(tmp_path, files)
    told = {gap.what: gap.by_hand for gap in report.gaps}
    assert "Import that pack" not in told["the action depot.nowhere, which no file of the pack defines"]
    assert "sync.publish" in told["the action core.inject_trigger of StackStorm itself"]
    assert "Import that pack" in told["the action other.thing of another pack"]


def test_file_that_is_not_read_is_named_and_not_its_folder(tmp_path: Path) -> None:
    files = {
        "actions/flow.yaml": CHAIN,
        "actions/workflows/flow.yaml": {"chain": [{"name": "one", "ref": "core.noop"}]},
        "actions/workflows/lost.yaml": "chain: []\n",
    }
    _, report = of_pack(tmp_path, files)
    assert [text.partition(" |")[0] for text in texts(report) if "is not read" in text] == [
        "actions/workflows/lost.yaml:1 actions/workflows/lost.yaml is not read"
    ]


@pytest.mark.parametrize(
    ("supplied", "printed"), [({}, "shed"), ({"word": None}, "shed"), ({"word": "ink"}, "ink")]
)
@pytest.mark.parametrize("is_required", [False, True])
@pytest.mark.parametrize("runner", ["orquesta", "action-chain"])
def test_null_takes_the_default_of_a_workflow(
    tmp_path: Path, runner: str, is_required: bool, supplied: dict[str, Any], printed: str
) -> None:
    about = {"type": "string", "default": "shed", "required": is_required}
    task = {"action": "core.echo", "input": {"message": "<% ctx(word) %>"}}
    body: dict[str, Any] = {"input": ["word"], "tasks": {"one": task}}
    if runner == "action-chain":
        echo = {"name": "one", "ref": "core.echo", "parameters": {"message": "{{ word }}"}}
        body = {"chain": [echo]}
    files = {
        "actions/flow.yaml": CHAIN | {"runner_type": runner, "parameters": {"word": about}},
        "actions/workflows/flow.yaml": body,
    }
    simulation, report = simulated(tmp_path, files)
    assert report.mapped["workflows"] == 1, texts(report)
    run = simulation.run("depot.flow", supplied)
    assert run.input("one") == {"message": printed}


def test_secret_with_a_default_refuses_null(tmp_path: Path) -> None:
    about = {"type": "string", "default": "shed", "secret": True}
    files = {
        "actions/flow.yaml": CHAIN | {"parameters": {"word": about}},
        "actions/workflows/flow.yaml": {"chain": [{"name": "one", "ref": "core.noop"}]},
    }
    project, _ = of_pack(tmp_path, files)
    assert project.workflows["flow"]["parameters"]["word"]["type"] == "string"
    assert "vars" not in project.workflows["flow"]


@pytest.mark.parametrize(
    ("command", "task", "message"), [("echo hi; exit 3", "tell", "hi 3 hi"), ("echo hi", "well", "hi")]
)
def test_chain_reads_the_result_of_a_failed_task(
    tmp_path: Path, command: str, task: str, message: str
) -> None:
    """StackStorm publishes after a failure too, and keeps the result of each task."""
    chain = {
        "vars": {"said": "none yet"},
        "chain": [
            {
                "name": "one",
                "ref": "core.local",
                "parameters": {"cmd": command},
                "publish": {"said": "{{ one.stdout }}"},
                "on-success": "well",
                "on-failure": "badly",
            },
            {"name": "well", "ref": "core.echo", "parameters": {"message": "{{ said }}"}},
            {"name": "badly", "ref": "core.noop", "on-success": "tell"},
            {
                "name": "tell",
                "ref": "core.echo",
                "parameters": {"message": "{{ one.stdout }} {{ one.return_code }} {{ said }}"},
            },
        ],
    }
    files = {"actions/flow.yaml": CHAIN, "actions/workflows/flow.yaml": chain}
    simulation, report = simulated(tmp_path, files)
    assert report.mapped["workflows"] == 1, texts(report)
    run = simulation.run("depot.flow")
    assert run.status == "completed"
    assert run.input(task) == {"message": message}


def test_chain_names_a_result_of_a_failed_workflow(tmp_path: Path) -> None:
    inner = {"chain": [{"name": "one", "ref": "core.noop"}]}
    chain = [
        {"name": "one", "ref": "depot.inner", "on-failure": "tell"},
        {"name": "tell", "ref": "core.echo", "parameters": {"message": "{{ one.tasks }}"}},
    ]
    files = {
        "actions/flow.yaml": CHAIN,
        "actions/workflows/flow.yaml": {"chain": chain},
        "actions/inner.yaml": CHAIN | {"name": "inner", "entry_point": "workflows/inner.yaml"},
        "actions/workflows/inner.yaml": inner,
    }
    _, report = of_pack(tmp_path, files)
    assert any("the result of a failed task" in text for text in texts(report)), texts(report)


@pytest.mark.parametrize("runner", ["local-shell-cmd", "run-local"])
def test_command_with_an_entry_point_is_named(tmp_path: Path, runner: str) -> None:
    """StackStorm fails each run of such an action."""
    act = {"name": "act", "runner_type": runner, "entry_point": "act.sh"}
    _, report = of_pack(tmp_path, {"actions/act.yaml": act, "actions/act.sh": "#!/bin/sh\necho hi\n"})
    assert any("entry_point" in text and "all fail in StackStorm" in text for text in texts(report)), texts(
        report
    )
    assert report.mapped["actions"] == 0


def test_condition_without_expression_is_named(tmp_path: Path) -> None:
    step = {"when": "<5 failed() %>", "do": "two"}
    files = {
        "actions/flow.yaml": CHAIN | {"runner_type": "orquesta"},
        "actions/workflows/flow.yaml": {
            "tasks": {"one": {"action": "core.noop", "next": [step]}, "two": {"action": "core.noop"}}
        },
    }
    _, report = of_pack(tmp_path, files)
    assert named(report, "actions/workflows/flow.yaml:5 the condition `<5 failed() %>` of one")
    assert report.mapped["workflows"] == 1


@pytest.mark.parametrize(
    ("kind", "theirs", "ours"),
    [
        ("actions", "kv.get", "kv_get"),
        ("actions", "1-Act", "x_1_act"),
        ("rules", "On-Seen", "on_seen"),
        ("triggers", "was.Seen", "was_seen"),
        ("workflows", "Flow", "flow"),
        ("schedules", "Each.Night", "each_night"),
    ],
)
def test_changed_name_is_named(tmp_path: Path, kind: str, theirs: str, ours: str) -> None:
    timer = {"type": "core.st2.IntervalTimer", "parameters": {"unit": "hours", "delta": 1}}
    rule = {"name": theirs, "enabled": True, "action": {"ref": "core.noop"}}
    folder, body = {
        "actions": ("actions", SHELL | {"name": theirs}),
        "workflows": ("actions", CHAIN | {"name": theirs}),
        "triggers": ("triggers", {"name": theirs}),
        "rules": ("rules", rule | {"trigger": {"type": "depot.seen"}}),
        "schedules": ("rules", rule | {"trigger": timer}),
    }[kind]
    chain = {"chain": [{"name": "one", "ref": "core.noop"}]}
    files = {
        "triggers/seen.yaml": {"name": "seen"},
        f"{folder}/a.yaml": body,
        "actions/workflows/flow.yaml": chain,
    }
    project, report = of_pack(tmp_path, files)
    assert ours in getattr(project, kind)
    assert named(report, f"{folder}/a.yaml:1 {theirs} is named {ours} in Penstock"), texts(report)
    assert report.mapped[kind] == report.found[kind]


@pytest.mark.parametrize("kind", ["object", "array"])
def test_published_text_for_a_mapping_is_named(tmp_path: Path, kind: str) -> None:
    """StackStorm parses such a text as JSON, or as a literal of Python."""
    act = SHELL | {"parameters": SHELL["parameters"] | {"extra": {"type": kind}}}
    one = {"name": "one", "ref": "depot.act", "parameters": {"cmd": "x"}, "on-success": "two"}
    two = {"name": "two", "ref": "depot.act", "parameters": {"cmd": "x", "extra": "{{ extra }}"}}
    chain = {"chain": [one | {"publish": {"extra": "{{ one.stdout.extra }}"}}, two]}
    files = {"actions/act.yaml": act, "actions/flow.yaml": CHAIN, "actions/workflows/flow.yaml": chain}
    _, report = of_pack(tmp_path, files)
    assert any("a text that StackStorm parses" in text for text in texts(report)), texts(report)
    assert report.mapped["workflows"] == 0


@pytest.mark.parametrize("command", ["""echo '{"a": 1}'""", """echo '"{\\"a\\": 1}"'"""])
def test_text_of_a_result_is_parsed_for_a_mapping(tmp_path: Path, command: str) -> None:
    act = SHELL | {"parameters": {"cmd": {"default": "true"}, "extra": {"type": "object"}}}
    one = {"name": "one", "ref": "core.local", "parameters": {"cmd": command}, "on-success": "two"}
    two = {"name": "two", "ref": "depot.act", "parameters": {"extra": "{{ one.stdout }}"}}
    files = {
        "actions/act.yaml": act,
        "actions/flow.yaml": CHAIN,
        "actions/workflows/flow.yaml": {"chain": [one, two]},
    }
    simulation, report = simulated(tmp_path, files)
    assert report.mapped["workflows"] == 1, texts(report)
    assert simulation.run("depot.flow").input("two") == {"extra": {"a": 1}}


def test_policy_of_an_applied_action_is_counted_as_applied(tmp_path: Path) -> None:
    policy = {"name": "few", "policy_type": "action.concurrency", "resource_ref": "depot.act"}
    files = {"actions/act.yaml": SHELL, "policies/few.yaml": policy | {"parameters": {"threshold": 2}}}
    _, report = of_pack(tmp_path, files)
    assert (report.mapped["policies"], report.applied["policies"]) == (1, 1)


BY_OLD_NAMES = (
    "CELERYBEAT_SCHEDULE = {'old': {'task': 'depot.tasks.weigh', 'schedule': 60}}\nCELERY_ACKS_LATE = True\n"
)
BY_NAMESPACE = "CELERY_BEAT_SCHEDULE = {'new': {'task': 'depot.tasks.weigh', 'schedule': 60}}\n"


@pytest.mark.parametrize(
    ("call", "names", "loss"),
    [
        ("", [], "fail"),
        ("app.config_from_object('django.conf:settings')\n", ["old"], "rerun"),
        ("app.config_from_object('django.conf:settings', namespace='CELERY')\n", ["new"], "fail"),
        ("app.config_from_object('django.conf:settings', namespace='CELERY_')\n", ["new"], "fail"),
        ("app.config_from_object('django.conf:settings', namespace=PREFIX)\n", ["new", "old"], "rerun"),
        ("app.config_from_envvar('WHERE')\n", ["new", "old"], "rerun"),
    ],
)
def test_settings_are_read_as_the_application_reads_them(
    tmp_path: Path, call: str, names: list[str], loss: str
) -> None:
    files = {
        "celery.py": APP + call,
        "tasks.py": "from .celery import app\n@app.task\ndef weigh(): ...\n",
        "__init__.py": "",
        "settings.py": BY_NAMESPACE + BY_OLD_NAMES,
    }
    project, report = of_application(tmp_path, files)
    assert sorted(project.schedules) == names
    assert project.actions["weigh"]["on_worker_loss"] == loss
    unread = [text for text in texts(report) if "The import omits it, since" in text]
    assert len(unread) == (2 if "old" not in names else 0) + ("new" not in names), texts(report)


def test_names_of_mapped_settings_are_those_of_celery() -> None:
    present = {name for name in MAPPED if name in SETTING_KEYS}
    assert present == MAPPED
    for name in MAPPED:
        old = next(key for key, new in _TO_NEW_KEY.items() if new == name).upper()
        assert is_read(old, namespace=False, old=True)
        assert is_read(f"CELERY_{name.upper()}", namespace=True, old=False)
        assert is_read(old, namespace=True, old=False) == (old == f"CELERY_{name.upper()}")


def test_application_of_a_foreign_class_is_named(tmp_path: Path) -> None:
    text = "from tenants_celery.app import CeleryApp\napp = CeleryApp('depot')\n@app.task\ndef weigh(): ...\n"
    _, report = of_application(tmp_path, {"tasks.py": text})
    assert named(
        report, "tasks.py:2 the application CeleryApp('depot'), whose class tenants_celery.app.CeleryApp"
    )


def test_foreign_base_of_settings_is_named(tmp_path: Path) -> None:
    files = {
        "tasks.py": APP + "app.config_from_object('depot.settings.Live')\n@app.task\ndef weigh(): ...\n",
        "__init__.py": "",
        "settings.py": "from shared.celery import Base\nfrom .more import Own\nclass Live(Own, Base): ...\n",
        "more.py": "from elsewhere import Further\nclass Own(Further): ...\n",
    }
    _, report = of_application(tmp_path, files)
    assert named(report, "settings.py:1 the settings that from shared.celery import Base")
    assert named(report, "more.py:1 the settings that from elsewhere import Further")
    assert not named(report, "settings.py:2 the settings that")


def test_name_of_a_task_is_told_with_its_action(tmp_path: Path) -> None:
    task = "@app.task(name='compute_run')\ndef run_wrapper(): ...\n"
    _, report = of_application(tmp_path, {"tasks.py": APP + task})
    (code,) = [text for text in texts(report) if "the code of" in text]
    assert "the task compute_run" in code
    assert "callers start depot.run_wrapper" in code


@pytest.mark.parametrize(
    ("arguments", "is_named"),
    [
        ("writer, **options", True),
        ("*, writer, **options", True),
        ("writer=1, **options", False),
        ("**options", False),
    ],
)
def test_required_parameter_beside_any_others_is_named(
    tmp_path: Path, arguments: str, is_named: bool
) -> None:
    _, report = of_application(tmp_path, {"tasks.py": APP + f"@app.task\ndef weigh({arguments}): ...\n"})
    assert named(report, "tasks.py:4 the parameters of weigh beside **options") == is_named, texts(report)


@pytest.mark.parametrize(
    ("arguments", "others"),
    [
        ("writer, *parts, **options", "*parts, **options"),
        ("writer, *parts", "*parts"),
        ("*parts, writer", "*parts"),
        ("writer=1, *parts, **options", None),
    ],
)
def test_required_parameter_beside_a_list_is_named(
    tmp_path: Path, arguments: str, others: str | None
) -> None:
    _, report = of_application(tmp_path, {"tasks.py": APP + f"@app.task\ndef weigh({arguments}): ...\n"})
    lines = [text for text in texts(report) if " the parameters of weigh beside " in text]
    assert [text.partition(" beside ")[2].partition(" | ")[0] for text in lines] == (
        [others] if others else []
    )
    assert named(report, "tasks.py:4 the parameters *parts of weigh"), texts(report)


@pytest.mark.parametrize(
    ("setting", "schedule", "is_named"),
    [
        ("app.conf.timezone = 'Europe/Berlin'\n", "", True),
        ("app.conf.timezone = 'Europe/Berlin'\n", "{'task': 'depot.tasks.weigh', 'schedule': go()}", True),
        (
            "app.conf.timezone = 'Europe/Berlin'\n",
            "{'task': 'depot.tasks.weigh', 'schedule': crontab()}",
            False,
        ),
    ],
)
def test_zone_that_no_schedule_has_is_named(
    tmp_path: Path, setting: str, schedule: str, is_named: bool
) -> None:
    code = f"from celery.schedules import crontab\n{APP}{setting}@app.task\ndef weigh(): ...\n"
    code += f"app.conf.beat_schedule = {{'often': {schedule}}}\n" if schedule else ""
    _, report = of_application(tmp_path, {"tasks.py": code})
    assert (
        any("the setting app.conf.timezone | Write `timezone`" in text for text in texts(report)) == is_named
    )


def test_soft_limit_beside_a_hard_limit_is_said_to_be_shorter(tmp_path: Path) -> None:
    code = "app.conf.task_time_limit = 300\napp.conf.task_soft_time_limit = 60\n@app.task\ndef weigh(): ...\n"
    files = {
        "tasks.py": APP + code,
        "Procfile": "w: celery -A depot worker --time-limit 9 --soft-time-limit 5\n",
    }
    project, report = of_application(tmp_path, files)
    assert project.actions["weigh"]["timeout"] == 300
    (line,) = [text for text in texts(report) if "the setting app.conf.task_soft_time_limit" in text]
    assert (
        "A longer `timeout` of an action is its hard limit, and the soft limit ends the task first." in line
    )
    (command,) = [text for text in texts(report) if text.startswith("Procfile:1 ")]
    assert (
        "--soft-time-limit is `timeout` of each action whose task has no soft limit of its own, instead of"
        in command
    )


@pytest.mark.parametrize(
    ("options", "executor", "is_mapped"),
    [
        ("acks_late=True", "process", True),
        ("acks_late=True, reject_on_worker_lost=True", None, True),
        ("acks_late=True, reject_on_worker_lost=True, time_limit=9", "process", False),
        ("", None, True),
    ],
)
def test_task_whose_process_dies_ends_as_in_celery(
    tmp_path: Path, options: str, executor: str | None, is_mapped: bool
) -> None:
    """Celery fails a task whose process is lost, also with `acks_late`, unless the task rejects such losses."""
    project, report = of_application(
        tmp_path, {"tasks.py": APP + f"@app.task({options})\ndef weigh(): ...\n"}
    )
    assert project.actions["weigh"].get("executor") == executor
    assert report.mapped["tasks"] == is_mapped


def test_text_that_is_rendered_loses_its_last_line_break(tmp_path: Path) -> None:
    rule = {"name": "seen", "trigger": {"type": "depot.seen"}}
    rule["criteria"] = {"trigger.port": {"type": "eq", "pattern": "Bath\n"}}
    rule["action"] = {"ref": "core.echo", "parameters": {"message": "a\r\n{{ trigger.port }}\n\n"}}
    echo = {"name": "one", "ref": "core.echo", "parameters": {"message": "b\n"}}
    files = {
        "triggers/seen.yaml": {"name": "seen"},
        "rules/seen.yaml": rule,
        "actions/flow.yaml": CHAIN,
        "actions/workflows/flow.yaml": {"chain": [echo]},
    }
    project, _ = of_pack(tmp_path, files)
    assert project.rules["seen"]["when"] == '((payload.port | default(none)) == "Bath")'
    assert project.rules["seen"]["params"] == {"message": "a\n{{ payload.port }}\n"}
    assert project.workflows["flow"]["tasks"]["one"]["input"] == {"message": "b"}


def test_condition_of_jinja_blocks_is_named(tmp_path: Path) -> None:
    step = {"when": "{% if failed() %}yes{% endif %}", "do": "two"}
    one, two = {"action": "core.noop", "delay": 0, "next": [step]}, {"action": "core.noop"}
    files = {
        "actions/flow.yaml": CHAIN | {"runner_type": "orquesta"},
        "actions/workflows/flow.yaml": {"tasks": {"one": one, "two": two}},
    }
    project, report = of_pack(tmp_path, files)
    assert any("a condition with a block of Jinja" in text for text in texts(report))
    assert {entry["when"] for entry in project.workflows["flow"]["tasks"]["one"]["next"]} == {"false"}
    assert "delay" not in project.workflows["flow"]["tasks"]["one"]


def test_whole_body_of_a_webhook_is_the_payload(tmp_path: Path) -> None:
    rule = {"name": "seen", "enabled": True, "action": {"ref": "core.noop"}}
    rule["trigger"] = {"type": "core.st2.webhook", "parameters": {"url": "x"}}
    rule["criteria"] = {"trigger.body": {"type": "exists"}}
    project, report = of_pack(tmp_path, {"rules/seen.yaml": rule})
    assert project.rules["seen"]["when"] == "(payload is not none)"
    assert report.mapped["rules"] == 1


def test_type_of_a_parameter_is_asked_for_only_where_it_counts(tmp_path: Path) -> None:
    remote = {"name": "far", "runner_type": "remote-shell-cmd"}
    tasks = [
        {"name": "one", "ref": "other.thing", "parameters": {"text": "an {{ crate }}"}, "on-success": "two"},
        {"name": "two", "ref": "depot.far", "parameters": {"hosts": "{{ crate }}", "sudo": "{{ crate }}"}},
    ]
    files = {
        "actions/far.yaml": remote,
        "actions/flow.yaml": CHAIN | {"parameters": {"crate": {"type": "integer"}}},
        "actions/workflows/flow.yaml": {"chain": tasks},
    }
    project, report = of_pack(tmp_path, files)
    assert not any("whose type is not known" in text for text in texts(report)), texts(report)
    assert project.workflows["flow"]["tasks"]["two"]["input"]["hosts"] == "{{ context.crate | string }}"


def test_action_of_the_runner_noop_is_mapped(tmp_path: Path) -> None:
    simulation, report = simulated(tmp_path, {"actions/act.yaml": {"name": "act", "runner_type": "noop"}})
    assert report.mapped["actions"] == 1
    assert simulation.run("depot.act").result == {"failed": False, "succeeded": True, "return_code": 0}


@pytest.mark.parametrize("about", [{"type": "string"}, {"type": "string", "default": "uptime"}])
def test_result_of_a_chain_comes_before_a_parameter_of_its_name(
    tmp_path: Path, about: dict[str, Any]
) -> None:
    chain = [
        {"name": "cmd", "ref": "core.echo", "parameters": {"message": "{{ cmd }}"}, "on-success": "two"},
        {"name": "two", "ref": "core.echo", "parameters": {"message": "{{ cmd.stdout }}"}},
    ]
    files = {
        "actions/flow.yaml": CHAIN | {"parameters": {"cmd": about}},
        "actions/workflows/flow.yaml": {"chain": chain},
    }
    simulation, report = simulated(tmp_path, files)
    run = simulation.run("depot.flow", {"cmd": "date"})
    assert run.status == "completed", (texts(report), run.error)
    assert (run.input("cmd"), run.input("two")) == ({"message": "date"}, {"message": "date"})


def test_action_that_keeps_its_failure_has_the_types_of_its_parameters(tmp_path: Path) -> None:
    act = SHELL | {"parameters": SHELL["parameters"] | {"count": {"type": "integer"}}}
    one = {"name": "one", "ref": "depot.act", "parameters": {"cmd": "x", "count": "{{ many }}"}}
    two = {"name": "two", "ref": "core.echo", "parameters": {"message": "{{ one.stdout }}"}}
    files = {
        "actions/act.yaml": act,
        "actions/flow.yaml": CHAIN | {"parameters": {"many": {"type": "string"}}},
        "actions/workflows/flow.yaml": {"chain": [one | {"on-failure": "two"}, two]},
    }
    project, report = of_pack(tmp_path, files)
    task = project.workflows["flow"]["tasks"]["one"]
    assert (task["action"], task["input"]["count"]) == (
        "depot.act_kept",
        "{{ (context.many | string) | int }}",
    )
    assert not any("whose type is not known" in text for text in texts(report))


@pytest.mark.parametrize(
    ("key", "value", "is_enabled"),
    [("type", {"ref": "backstop"}, False), ("colour", "red", False), ("tags", [{"name": "x"}], True)],
)
def test_rule_whose_key_is_not_mapped_is_disabled(
    tmp_path: Path, key: str, value: Any, is_enabled: bool
) -> None:
    rule = {
        "name": "in",
        "enabled": True,
        "trigger": {"type": "depot.came"},
        "action": {"ref": "core.noop"},
        key: value,
    }
    files = {"triggers/came.yaml": {"name": "came", "pack": "depot"}, "rules/in.yaml": rule}
    project, report = of_pack(tmp_path, files)
    assert project.rules["in"].get("enabled", True) is is_enabled
    assert any(f"{key}" in text for text in texts(report))


def test_disabled_policy_has_nothing_to_name(tmp_path: Path) -> None:
    policy = {"name": "few", "resource_ref": "depot.act", "policy_type": "action.retry", "enabled": False}
    files = {"actions/act.yaml": SHELL, "policies/few.yaml": policy | {"parameters": {"max_retry_count": 3}}}
    _, report = of_pack(tmp_path, files)
    assert not any("policies/few.yaml" in text for text in texts(report))
