"""Changes of meaning that another review from outside found. Where Celery can run, its own values are the expectations."""

from __future__ import annotations

import ast
import itertools
from pathlib import Path
from typing import Any

import pytest
import yaml
from celery import Celery
from celery.schedules import crontab

from penstock_import.applied import keep_applicable
from penstock_import.celery import CeleryProject
from penstock_import.celery_options import retry_of
from tests.penstock_import.test_reviewed_changes import named, of_application, of_pack, texts

APP = "from celery import Celery\napp = Celery('depot')\n"
TASKS = APP + "@app.task\ndef weigh(a=None): ...\n@app.task\ndef bill(a=None): ...\n"
DICTS = (
    "A = {'one': {'task': 'depot.tasks.weigh', 'schedule': 10}, 'two': {'task': 'depot.tasks.weigh', 'schedule': 20}}\n"
    "B = {'two': {'task': 'depot.tasks.bill', 'schedule': 30}, 'three': {'task': 'depot.tasks.bill', 'schedule': 40}}\n"
)
TWO = "{'two': {'task': 'depot.tasks.bill', 'schedule': 50}}"
PYTHON: dict[str, Any] = {
    "name": "py",
    "runner_type": "python-script",
    "entry_point": "py.py",
    "parameters": {"a": {"type": "string"}},
}
SHELL = {
    "name": "sh",
    "runner_type": "local-shell-cmd",
    "parameters": {"cmd": {"default": "echo hi", "immutable": True}},
}


# -- equal keys -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "app.conf.beat_schedule = {**A, **B}\n",
        "app.conf.beat_schedule = {**B, **A}\n",
        "app.conf.beat_schedule = A | B\n",
        "app.conf.beat_schedule = B | A\n",
        f"app.conf.beat_schedule = {{**A, **{TWO}}}\n",
        f"app.conf.beat_schedule = {{**{TWO}, **A}}\n",
        f"app.conf.beat_schedule = A | {TWO}\n",
        "app.conf.beat_schedule = {'two': B['three'], **A}\n".replace("B['three']", TWO[8:-1]),
        "app.conf.beat_schedule = {**A, 'two': B}\n".replace("B}", f"{TWO[8:-1]}}}"),
        f"app.conf.beat_schedule = {{'two': {TWO[8:-1]}, 'two': {{'task': 'depot.tasks.weigh', 'schedule': 5}}}}\n",
        f"app.conf.beat_schedule = dict(A)\napp.conf.beat_schedule.update({TWO})\n",
        f"A.update({TWO})\napp.conf.beat_schedule = {{**A}}\n",
        f"app.conf.beat_schedule = {{**A}}\nA.update({TWO})\n",
        "app.conf.beat_schedule = {**A}\nA['four'] = {'task': 'depot.tasks.bill', 'schedule': 1}\n",
        "app.conf.beat_schedule = A\nA['four'] = {'task': 'depot.tasks.bill', 'schedule': 1}\n",
        "A.pop('two')\napp.conf.beat_schedule = {**A}\n",
        "app.conf.beat_schedule = A\ndel A['two']\n",
        f"app.conf.beat_schedule = {{**(A | {TWO})}}\n",
        f"app.conf.beat_schedule = {TWO} | A\n",
        f"app.conf.beat_schedule = dict({TWO}) | dict(A)\n",
        "app.conf.beat_schedule = dict(A, **B)\n",
        "app.conf.beat_schedule = dict(B, **A)\n",
        "C = B.copy()\napp.conf.beat_schedule = {**C, **A}\n",
        "app.conf.beat_schedule = {}\nfor k, v in A.items(): app.conf.beat_schedule[k] = v\n",
    ],
)
def test_merged_schedules_are_those_of_celery(tmp_path: Path, text: str) -> None:
    project, report = of_application(tmp_path, {"__init__.py": "", "tasks.py": TASKS + DICTS + text})
    module: dict[str, Any] = {}
    exec(TASKS.replace("@app.task\n", "") + DICTS + text, module)
    theirs = module["app"].conf.beat_schedule
    assert {name: (body["action"].replace("depot.", "depot.tasks."), body["every"]) for name, body in
            project.schedules.items()} == {name: (body["task"], body["schedule"]) for name, body in theirs.items()}  # fmt: skip
    assert report.found["schedules"] == len(theirs)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("app.conf.beat_schedule = ChainMap(B, A)\n", "tasks.py:9 beat_schedule is computed"),
        (
            "app.conf.beat_schedule = {}\nfor k, v in load(A): app.conf.beat_schedule[k] = v\n",
            "tasks.py:10 beat_schedule is",
        ),
        ("app.conf.beat_schedule = A if DEBUG else B\n", "tasks.py:9 beat_schedule where DEBUG"),
        ("app.conf.beat_schedule = {**A}\nA.pop('two')\n", "tasks.py:10 A.pop('two'), which changes A"),
        ("app.conf.beat_schedule = {**A}\ndel A['two']\n", "tasks.py:10 A['two'], which changes A"),
        (
            "app.conf.beat_schedule = {**A}\napp.conf.beat_schedule.pop('two')\n",
            "tasks.py:10 app.conf.beat_schedule.pop",
        ),
        (
            f"app.conf.beat_schedule = {{**A}}\nA.update({TWO})\n",
            "tasks.py:10 {'two': {'task': 'depot.tasks.bill'",
        ),
        (
            f"if DEBUG: A = {TWO}\napp.conf.beat_schedule = A\n",
            "tasks.py:9 A, which tasks.py:7 sets too",
        ),
        (
            f"app.conf.update(beat_schedule=A)\napp.conf.update(beat_schedule={TWO})\n",
            "tasks.py:10 beat_schedule, which tasks.py:9 sets too",
        ),
        (
            "C = A | B\napp.conf.beat_schedule = {**C}\n",
            "tasks.py:10 an entry of beat_schedule is computed: C",
        ),
        ("app.conf.beat_schedule = A | load()\n", "tasks.py:9 beat_schedule is computed"),
        (
            "app.conf.beat_schedule = {**A, **(B | load())}\n",
            "tasks.py:9 an entry of beat_schedule is computed",
        ),
        (
            "app.conf.beat_schedule = {**A, **B}\n",
            "tasks.py:7 the schedule two, which stands again at tasks.py:8",
        ),
    ],
)
def test_change_of_merged_schedules_is_named(tmp_path: Path, text: str, expected: str) -> None:
    _, report = of_application(tmp_path, {"__init__.py": "", "tasks.py": TASKS + DICTS + text})
    assert named(report, expected), texts(report)


@pytest.mark.parametrize(
    "text",
    [
        "app.conf.task_routes = {**{'depot.tasks.weigh': 'a'}, 'depot.tasks.weigh': 'b'}\n",
        "app.conf.task_routes = {'depot.tasks.weigh': 'b', **A}\n",
        "app.conf.task_routes = A | {'depot.tasks.weigh': 'b'}\n",
        "app.conf.task_routes = {'depot.tasks.weigh': 'b'} | A\n",
        "app.conf.task_routes = {'depot.*': 'b', **P}\n",
        "app.conf.task_routes = P | {'depot.*': 'b'}\n",
    ],
)
def test_merged_routes_are_those_of_celery(tmp_path: Path, text: str) -> None:
    body = (
        "@app.task(shared=False)\ndef weigh(): ...\nA = {'depot.tasks.weigh': 'a'}\nP = {'*.weigh': 'a'}\n"
        + text
    )
    project, _ = of_application(tmp_path, {"__init__.py": "", "tasks.py": APP + body})
    module: dict[str, Any] = {"__name__": "depot.tasks"}
    exec(APP + body, module)
    assert (
        project.actions["weigh"]["route"]
        == module["app"].amqp.router.route({}, "depot.tasks.weigh")["queue"].name
    )


# -- options --------------------------------------------------------------------------------------------------------

VALUES = (
    "None",
    "True",
    "False",
    "0",
    "1",
    "-1",
    "3",
    "2.5",
    "1e400",
    "10 ** 400",
    "'5'",
    "'x'",
    "''",
    "[1]",
    "{'a': 1}",
    "()",
)
SETTINGS = {"task_default_rate_limit": "7/m", "task_acks_late": True, "task_reject_on_worker_lost": True}


def rate_of(action: dict[str, Any]) -> Any:
    return [limit["rate"] for limit in action.get("limits", ())]


@pytest.mark.parametrize("where", ["option", "annotation", "annotation of all", "both"])
@pytest.mark.parametrize("value", [*VALUES, "'0/m'", "'3/m'", "'0.5/s'"])
@pytest.mark.parametrize("option", ["rate_limit", "acks_late", "reject_on_worker_lost"])
def test_option_is_that_of_celery_or_named(tmp_path: Path, option: str, value: str, where: str) -> None:
    """The settings for all tasks say something else, and count where a value is None."""
    annotated = {"option": "{}", "annotation of all": f"{{'*': {{'{option}': {value}}}}}"}.get(
        where, f"{{'depot.tasks.act': {{'{option}': {value}}}}}"
    )
    own = {
        "option": f"{option}={value}",
        "both": f"{option}={'2.0' if option == 'rate_limit' else 'False'}",
    }.get(where, "")
    settings = "".join(f"app.conf.{name} = {setting!r}\n" for name, setting in SETTINGS.items())
    body = (
        f"{settings}app.conf.task_annotations = {annotated}\n@app.task(shared=False, {own})\ndef act(): ...\n"
    )
    project, report = of_application(tmp_path, {"__init__.py": "", "tasks.py": APP + body})
    lines = [text for text in texts(report) if "counts for each worker" not in text]
    if any(option in text or "task_annotations" in text for text in lines):
        return
    module: dict[str, Any] = {"__name__": "depot.tasks"}
    exec(APP + body, module)
    module["app"].finalize()
    theirs, ours = getattr(module["act"], option), project.actions["act"]
    if option == "rate_limit":
        from celery.utils.time import rate

        each_second = [about["count"] / about["seconds"] for about in rate_of(ours)]
        assert each_second == ([pytest.approx(rate(theirs))] if rate(theirs) else [])
    elif option == "acks_late":
        assert (ours["on_worker_loss"] == "rerun") is bool(theirs)
    else:
        assert ("executor" not in ours) is bool(theirs)  # it has a process of its own otherwise


@pytest.mark.parametrize("value", ["None", "0", "-1", "True", "1e400", "'5'", "[]"])
def test_time_limit_of_no_time_is_not_taken(tmp_path: Path, value: str) -> None:
    body = f"app.conf.task_time_limit = 77\n@app.task(time_limit={value})\ndef act(): ...\n"
    project, report = of_application(tmp_path, {"tasks.py": APP + body})
    assert project.actions["act"]["timeout"] in (77, None)
    assert value == "None" or any(
        "time_limit of act has a value that the import does not map" in text for text in texts(report)
    )
    assert value != "None" or project.actions["act"]["timeout"] == 77


def test_annotation_of_a_key_twice_is_the_last(tmp_path: Path) -> None:
    body = "app.conf.task_annotations = {'*': {'acks_late': True}, '*': {'time_limit': 5}}\n@app.task\ndef act(): ...\n"
    project, _ = of_application(tmp_path, {"tasks.py": APP + body})
    assert (project.actions["act"]["timeout"], project.actions["act"]["on_worker_loss"]) == (5, "fail")


KWARGS = [f"{{'{key}': {value}}}" for key in ("max_retries", "countdown") for value in VALUES] + [
    "None",
    "()",
    "{1: 2}",
]


@pytest.mark.parametrize("options", [
    *(f"retry_kwargs={kwargs}, max_retries=1, default_retry_delay=7" for kwargs in KWARGS),
    *(f"{option}={value}" for option in ("max_retries", "retry_backoff", "retry_jitter") for value in VALUES),
    *(f"default_retry_delay={value}" for value in VALUES),
    *(f"retry_backoff=2, retry_jitter=False, retry_backoff_max={value}" for value in VALUES),
])  # fmt: skip
def test_retries_of_any_value_are_those_of_celery_or_named(options: str) -> None:
    """The attempts of a task that always fails, and the pauses between them."""
    call = ast.parse(f"task(autoretry_for=(KeyError,), {options})", mode="eval").body
    assert isinstance(call, ast.Call)
    gaps: list[str] = []
    policy = retry_of(
        {str(word.arg): word.value for word in call.keywords},
        False,
        lambda _, subject, __: gaps.append(subject),
    )
    assert policy is not None
    if gaps:
        return
    pauses = list(itertools.islice(pauses_of_celery(options), 12))
    attempts = policy["max_attempts"]
    growth = policy.get("factor", 1)
    ours = [
        min(policy["initial_delay"] * growth**number, policy["max_delay"])
        for number in range(min(attempts - 1, 12))
    ]
    if policy["jitter"]:
        assert len(ours) == len(pauses)
    else:
        assert ours == pauses


def pauses_of_celery(options: str) -> Any:
    """Yield the pauses before each further attempt of a task that always fails."""
    from celery.exceptions import Retry

    app = Celery("t", broker="memory://", set_as_current=False)

    def act() -> None:
        raise KeyError("no")

    words = {"app": app, "KeyError": KeyError, "act": act}
    task = eval(f"app.task(autoretry_for=(KeyError,), shared=False, name='act', {options})(act)", words)
    for number in range(12):
        task.push_request(retries=number, called_directly=False, is_eager=False, args=(), kwargs={})
        try:
            task.apply_async = lambda *args, **options: None
            sent: dict[str, Any] = {}
            task.signature_from_request = lambda *args, sent=sent, **options: sent.update(options) or _Sent()
            task.run()
        except Retry:
            yield sent["countdown"]
        except KeyError:
            return
        finally:
            task.pop_request()


class _Sent:
    def apply_async(self) -> None: ...


def test_retries_by_hand_beside_others_are_named(tmp_path: Path) -> None:
    options = "autoretry_for=(OSError,), retry_kwargs={'max_retries': 5, 'countdown': 9}, max_retries=2"
    body = f"@app.task(bind=True, {options})\ndef act(self):\n    raise self.retry()\n"
    _, report = of_application(tmp_path, {"tasks.py": APP + body})
    assert any("autoretry_for beside self.retry, which has other delays" in text for text in texts(report))
    assert any("autoretry_for beside self.retry, which max_retries=2" in text for text in texts(report))


def test_retries_by_hand_alone_do_not_read_retry_kwargs(tmp_path: Path) -> None:
    body = "@app.task(bind=True, retry_kwargs={'max_retries': 9, 'countdown': 1})\ndef act(self):\n    raise self.retry()\n"
    project, _ = of_application(tmp_path, {"tasks.py": APP + body})
    assert (
        project.actions["act"]["retry"]["max_attempts"],
        project.actions["act"]["retry"]["initial_delay"],
    ) == (4, 180)


@pytest.mark.parametrize(
    "value", ["[1, (2, 3)]", "{'a': {1: 2}}", "{1: 2}", "1e400", "[{'a': b'x'}]", "'\\x00'", "{1, 2}", "(1,)"]
)
def test_default_that_json_changes_is_named(tmp_path: Path, value: str) -> None:
    project, report = of_application(tmp_path, {"tasks.py": APP + f"@app.task\ndef act(x={value}): ...\n"})
    assert "default" not in project.actions["act"]["parameters"]["x"]
    assert named(report, "tasks.py:4 the default of x of act is computed")


@pytest.mark.parametrize("value", ["[1, [2, None]]", "{'a': {'1': 2.5}}", "None", "'text'", "True"])
def test_default_that_json_keeps_is_mapped(tmp_path: Path, value: str) -> None:
    project, _ = of_application(tmp_path, {"tasks.py": APP + f"@app.task\ndef act(x={value}): ...\n"})
    assert project.actions["act"]["parameters"]["x"]["default"] == ast.literal_eval(value)


def test_arguments_of_a_schedule_are_those_that_celery_sends(tmp_path: Path) -> None:
    entry = "{{'task': 'depot.tasks.weigh', 'schedule': 5, 'args': {}}}"
    body = (
        TASKS
        + f"app.conf.beat_schedule = {{'one': {entry.format('[(1, 2)]')}, 'two': {entry.format('[{1}]')}}}\n"
    )
    project, report = of_application(tmp_path, {"__init__.py": "", "tasks.py": body})
    assert [schedule["params"] for schedule in project.schedules.values()] == [{"a": [1, 2]}]
    assert named(report, "tasks.py:7 the schedule two: arguments that are not JSON")


OPTIONS = [
    "rate_limit",
    "time_limit",
    "soft_time_limit",
    "acks_late",
    "reject_on_worker_lost",
    "queue",
    "max_retries",
    "default_retry_delay",
    "retry_backoff",
    "retry_backoff_max",
    "retry_jitter",
    "retry_kwargs",
    "autoretry_for",
    "dont_autoretry_for",
    "name",
    "bind",
    "base",
    "serializer",
    "expires",
    "typing",
]
ODD = (
    "lambda: 1",
    "timedelta(seconds='5')",
    "timedelta(days=[1])",
    "1e308 * 10",
    "{[1]: 2}",
    "10 ** 400 * 1.0",
    "1j",
    "...",
    "X",
)


@pytest.mark.parametrize("value", [*VALUES, *ODD, "10" * 150 + " * 1.0"])
def test_no_value_of_an_option_ends_an_import(tmp_path: Path, value: str) -> None:
    lines = [APP, f"app.conf.task_annotations = {{'*': {{'time_limit': {value}}}}}\n"]
    lines += [f"@app.task({option}={value}, bind={number % 2 == 0}, **more)\ndef act_{number}(self, x={value}): self.retry()\n"
              for number, option in enumerate(OPTIONS) if option != "bind"]  # fmt: skip
    lines += [f"@app.task(autoretry_for=(OSError,), retry_kwargs={{'{key}': {value}}})\ndef by_{key}(): ...\n"
              for key in ("countdown", "max_retries")]  # fmt: skip
    lines += [
        f"app.conf.beat_schedule = {{'a': {{'task': 'tasks.by_countdown', 'schedule': {value}, 'args': {value}}}}}\n"
    ]
    (tmp_path / "tasks.py").write_text("".join(lines))
    source = CeleryProject(tmp_path / "tasks.py")
    source.mapped().write(tmp_path / "ours", "", source.report)


# -- names ----------------------------------------------------------------------------------------------------------


def test_other_names_of_an_import_are_read(tmp_path: Path) -> None:
    body = (
        "from celery import Celery, shared_task as st\nfrom celery.schedules import crontab as ct, schedule as every\n"
        "from datetime import timedelta as td\napp = Celery('depot')\n@st(queue='scales')\ndef weigh(): ...\n"
        "app.conf.beat_schedule = {\n"
        + "".join(f"  '{name}': {{'task': 'depot.tasks.weigh', 'schedule': {when}}},\n" for name, when in {
            "a": "ct(minute=0, hour=4)", "b": "td(minutes=3)", "c": "every(td(hours=1))", "d": "ct.from_string('0 4 * * 1')",
        }.items())
        + "}\n"
    )  # fmt: skip
    project, report = of_application(tmp_path, {"__init__.py": "", "tasks.py": body})
    assert report.mapped["schedules"] == 4
    assert project.actions["weigh"]["route"] == "scales"
    assert report.mapped["tasks"] == 1
    same = of_application(tmp_path / "same", {"__init__.py": "", "tasks.py": body.replace("ct.from_string('0 4 * * 1')",
        "ct(minute='0', hour='4', day_of_week='1')")})[0]  # fmt: skip
    assert project.schedules == same.schedules
    assert crontab.from_string("0 4 * * 1") == crontab(minute="0", hour="4", day_of_week="1")


def test_name_of_an_import_that_means_two_things_stays(tmp_path: Path) -> None:
    body = "from celery.schedules import crontab as ct\ndef crontab(hour): ...\n" + TASKS
    body += "app.conf.beat_schedule = {'a': {'task': 'depot.tasks.weigh', 'schedule': crontab(hour=4)}}\n"
    project, _ = of_application(
        tmp_path, {"__init__.py": "", "tasks.py": body.replace("crontab(hour=4)", "ct(hour=4)")}
    )
    assert not project.schedules


@pytest.mark.parametrize(
    ("statement", "text"),
    [
        ("from depot import consts as k", "k.MAX"),
        ("from . import consts", "consts.MAX"),
        ("import depot.consts", "depot.consts.MAX"),
        ("import depot.consts as k", "k.MAX"),
    ],
)
def test_constant_of_a_module_is_read(tmp_path: Path, statement: str, text: str) -> None:
    files = {"__init__.py": "", "consts.py": "MAX = 7\nDELAY = 9\n"}
    tasks = f"{statement}\n{APP}@app.task(time_limit={text}, autoretry_for=(OSError,), max_retries={text})\ndef act(): ...\n"
    project, _ = of_application(tmp_path, files | {"tasks.py": tasks})
    assert (project.actions["act"]["timeout"], project.actions["act"]["retry"]["max_attempts"]) == (7, 8)
    later = f"{statement}\n{text} = 5\n"
    project, report = of_application(tmp_path / "changed", files | {"tasks.py": tasks, "more.py": later})
    assert project.actions["act"]["timeout"] is None
    assert named(report, f"tasks.py:4 time_limit of act is computed: {text}")


def test_task_of_celery_in_a_schedule_is_left_out(tmp_path: Path) -> None:
    body = TASKS + "app.conf.beat_schedule = {'clean': {'task': 'celery.backend_cleanup', 'schedule': 5}}\n"
    project, report = of_application(tmp_path, {"tasks.py": body})
    assert not project.schedules
    assert set(project.actions) == {"weigh", "bill"}
    assert any(
        "celery.backend_cleanup is a task of Celery itself | Leave it out" in text for text in texts(report)
    )


def test_task_is_named_as_celery_names_it_where_the_folder_is_no_package(tmp_path: Path) -> None:
    (tmp_path / "team+depot" / "app").mkdir(parents=True)
    (tmp_path / "team+depot" / "app" / "jobs.py").write_text(APP + "@app.task\ndef act(): ...\n")
    source = CeleryProject(tmp_path / "team+depot")
    source.mapped()
    assert any("the task app.jobs.act" in text for text in texts(source.report))


def test_arguments_of_an_application_are_no_settings(tmp_path: Path) -> None:
    body = "from celery import Celery\napp = Celery('depot', broker='redis://', backend='rpc://')\n"
    _, report = of_application(tmp_path, {"tasks.py": body + "@app.task\ndef act(): ...\n"})
    assert named(report, "tasks.py:2 the argument broker | Set PENSTOCK_BROKER_URL")
    assert named(report, "tasks.py:2 the argument backend | Results are kept")


@pytest.mark.parametrize("option", ["acks_on_failure", "acks_on_timeout", "retry_on_worker_lost"])
def test_options_of_later_celery_are_known(tmp_path: Path, option: str) -> None:
    body = f"@app.task({option}={option == 'retry_on_worker_lost'})\ndef act(): ...\n@app.task({option}=None)\ndef no(): ...\n"
    _, report = of_application(tmp_path, {"tasks.py": APP + body})
    lines = [text for text in texts(report) if f" {option} of " in text]
    assert len(lines) == 1
    assert "Celery does not know this option" not in lines[0]


def test_canvases_of_a_module_have_the_names_of_the_source(tmp_path: Path) -> None:
    body = "from celery import chain\nmorning = chain(weigh.si(), bill.si())\nevening = chain(bill.si(), weigh.si())\n"
    project, _ = of_application(
        tmp_path, {"tasks.py": TASKS + body + "chain(weigh.si(), bill.si()).delay()\n" * 3}
    )
    assert list(project.workflows) == [
        "morning_flow",
        "evening_flow",
        "module_flow",
        "module_flow_2",
        "module_flow_3",
    ]


def test_current_folder_has_a_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "depot").mkdir()
    (tmp_path / "depot" / "tasks.py").write_text(APP + "@app.task\ndef act(): ...\n")
    monkeypatch.chdir(tmp_path / "depot")
    assert CeleryProject(Path()).project.name == "depot"


# -- StackStorm -----------------------------------------------------------------------------------------------------


def of_chain(folder: Path, timeout: Any, ref: str, *actions: dict[str, Any]) -> tuple[Any, Any]:
    head = {
        "name": "flow",
        "runner_type": "action-chain",
        "entry_point": "flow.yaml",
        "parameters": {"t": {"type": "integer"}},
    }
    chain = {"chain": [{"name": "first", "ref": ref, "parameters": {"timeout": timeout}}], "display": "x"}
    files: dict[str, Any] = {
        "actions/flow.meta.yaml": head,
        "actions/flow.yaml": "---\n" + yaml.safe_dump(chain),
    }
    files |= {f"actions/{body['name']}.yaml": body for body in actions}
    (folder / "depot" / "actions").mkdir(parents=True)
    (folder / "depot" / "actions" / "py.py").write_text("")
    return of_pack(folder, files)


@pytest.mark.parametrize("declared", [{}, {"timeout": {"type": "integer"}}])
@pytest.mark.parametrize("runner", ["python-script", "http-request", "remote-shell-cmd", "winrm-cmd"])
def test_computed_timeout_of_a_chain_is_named(tmp_path: Path, declared: dict[str, Any], runner: str) -> None:
    action = PYTHON | {"runner_type": runner, "parameters": PYTHON["parameters"] | declared}
    project, report = of_chain(tmp_path, "{{ t }}", "depot.py", action)
    task = project.workflows["flow"]["tasks"]["first"]
    assert "timeout" not in task.get("input", {})
    assert "timeout" not in project.actions["py"]["parameters"]
    assert any("the timeout of first is computed" in text for text in texts(report))
    assert not any("whose type is not known" in text for text in texts(report))


@pytest.mark.parametrize(
    ("timeout", "line"),
    [
        (0, "the timeout of first is computed: 0"),
        (-1, "the timeout of first is computed: -1"),
        ("x", "the expression x: a text that StackStorm does not convert to the type integer"),
    ],
)
def test_timeout_of_a_chain_that_is_none_is_named(tmp_path: Path, timeout: Any, line: str) -> None:
    project, report = of_chain(tmp_path, timeout, "depot.py", PYTHON)
    assert project.workflows["flow"]["tasks"]["first"] == {"action": "depot.py"}
    assert any(line in text for text in texts(report))


@pytest.mark.parametrize(("timeout", "limit"), [(True, 1), ("30", 30), (2.5, 2)])
def test_timeout_of_a_chain_is_converted_to_a_number(tmp_path: Path, timeout: Any, limit: int) -> None:
    """StackStorm converts each to the type of its runner's parameter."""
    project, _ = of_chain(tmp_path, timeout, "depot.py", PYTHON)
    assert project.workflows["flow"]["tasks"]["first"] == {"action": "depot.py", "timeout": limit}


def test_timeout_of_a_chain_is_that_of_its_task(tmp_path: Path) -> None:
    project, report = of_chain(
        tmp_path, 30, "depot.py", PYTHON | {"parameters": {"timeout": {"type": "integer"}}}
    )
    assert project.workflows["flow"]["tasks"]["first"] == {"action": "depot.py", "timeout": 30}
    assert any("StackStorm refuses to start a chain with an unknown key" in text for text in texts(report))
    assert not any("Orquesta" in text for text in texts(report) if "display" in text)


def test_computed_timeout_of_a_shell_ends_its_command(tmp_path: Path) -> None:
    project, _ = of_chain(tmp_path, "{{ t }}", "depot.sh", SHELL)
    task = project.workflows["flow"]["tasks"]["first"]
    assert (task["timeout"], list(task["input"])) == (None, ["timeout"])


@pytest.mark.parametrize(
    ("about", "limit", "words"),
    [
        ({"type": "integer", "required": True}, 600, "StackStorm requires it of each caller"),
        ({"type": "integer", "default": 1800}, 1800, "a call with the parameter is refused"),
        ({"type": "integer", "default": 10, "immutable": True}, 10, "In StackStorm it is immutable"),
        ({"type": "integer", "default": 0}, 600, "the timeout 0 of action py"),
        ({"type": "integer", "default": -5}, 600, "the timeout -5 of action py"),
        ({"default": True}, 600, "the timeout True of action py"),
        ({"default": "soon"}, 600, "the timeout 'soon' of action py"),
    ],
)
def test_timeout_among_parameters_is_named(
    tmp_path: Path, about: dict[str, Any], limit: int, words: str
) -> None:
    project, report = of_pack(tmp_path, {"actions/py.yaml": PYTHON | {"parameters": {"timeout": about}}})
    assert project.actions["py"]["timeout"] == limit
    assert "timeout" not in project.actions["py"]["parameters"]
    assert any(
        "the parameter timeout of action py, which is one of its runner" in text for text in texts(report)
    )
    assert any(words in text for text in texts(report)), texts(report)


@pytest.mark.parametrize("key", ["env", "log_level", "debug", "content_version"])
def test_parameter_of_the_python_runner_that_a_task_gives_is_named(tmp_path: Path, key: str) -> None:
    chain = {"chain": [{"name": "first", "ref": "depot.py", "parameters": {key: "x"}}]}
    head = {"name": "flow", "runner_type": "action-chain", "entry_point": "flow.yaml"}
    files = {
        "actions/flow.meta.yaml": head,
        "actions/flow.yaml": "---\n" + yaml.safe_dump(chain),
        "actions/py.yaml": PYTHON,
    }
    _, report = of_pack(tmp_path, files)
    assert any(
        f"the parameter {key} of action depot.py, which is one of its runner" in text
        for text in texts(report)
    )


def test_workflow_that_runs_a_refused_one_is_not_refused_for_it(tmp_path: Path) -> None:
    inner = {"version": 1.0, "tasks": {"ask": {"action": "core.local", "input": {"cmd": "echo"}}}}
    outer = {"version": 1.0, "tasks": {"run": {"action": "depot.inner", "next": [{"publish": [{"a": 1}]}]}}}
    files: dict[str, Any] = {}
    for name, body in (("inner", inner), ("outer", outer)):
        head = {"name": name, "runner_type": "orquesta", "entry_point": f"workflows/{name}.yaml"}
        files |= {f"actions/{name}.yaml": head, f"actions/workflows/{name}.yaml": body}
    project, report = of_pack(tmp_path, files)
    assert project.workflows["outer"]["tasks"]["run"]["workflow"] == "depot.inner"
    project.workflows["inner"]["tasks"]["ask"]["action"] = "no ref"
    keep_applicable(project, report)
    assert project.workflows["outer"]["tasks"]["run"]["action"] == "depot.inner"
    refused = [text for text in texts(report) if "is refused by Penstock" in text]
    assert len(refused) == 1, refused
    assert "workflow inner is refused by Penstock" in refused[0]


@pytest.mark.parametrize(
    ("head", "decorator", "body", "retried"),
    [
        ("from tenacity import retry\n", "@retry(reraise=True)\n", "fetch()", False),
        ("import tenacity\n", "@tenacity.retry\n", "fetch()", False),
        ("import tenacity\n", "", "tenacity.retry(fetch)()", False),
        ("from tenacity import retry\n", "", "retry(fetch)()", False),
        ("", "", "self.retry()", True),
        ("", "", "retry = self.retry; retry()", True),
        ("from tenacity import retry\n", "@retry\n", "raise self.retry(countdown=3)", True),
    ],
)
def test_retry_of_another_package_is_none_of_celery(
    tmp_path: Path, head: str, decorator: str, body: str, retried: bool
) -> None:
    text = f"{head}{APP}@app.task(bind=True)\n{decorator}def weigh(self): {body}\n"
    project, report = of_application(tmp_path, {"tasks.py": text})
    assert ("retry" in project.actions["weigh"]) is retried
    assert not decorator or any("the decorator" in line for line in texts(report))
