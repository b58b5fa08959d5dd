"""The places in which applications keep settings of their tasks: each place is mapped or named."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from celery import Celery

from penstock_import.applied import keep_applicable
from penstock_import.celery import CeleryProject
from penstock_import.project import Project

APP = "from celery import Celery\napp = Celery('depot')\n"
TASK = "@app.task\ndef weigh(crate): ...\n"


def imported(folder: Path, files: dict[str, str]) -> tuple[Project, set[str], int]:
    """Return what is made of the files of an application, the gaps with their places, and the number of mapped tasks."""
    for name, text in files.items():
        (folder / "depot" / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / "depot" / name).write_text(text)
    source = CeleryProject(folder / "depot")
    project = source.mapped()
    keep_applicable(project, source.report)
    return (
        project,
        {f"{gap.file}:{gap.line} {gap.what}" for gap in source.report.gaps},
        source.report.mapped["tasks"],
    )


@pytest.mark.parametrize(
    "maker",
    [
        "def own(*args, **options):\n    return app.task(*args, acks_late=True, **options)\n",
        "def inner(*args, **options):\n    return app.task(*args, acks_late=True, **options)\n"
        "def own(**options):\n    return inner(max_retries=3, **options)\n",
        "def own(**options):\n    def wrap(function):\n        @app.task(acks_late=True, **options)\n"
        "        def run(*args): return function(*args)\n        return run\n    return wrap\n",
        "class Maker:\n    def __call__(self, **options):\n        return app.task(acks_late=True, **options)\n"
        "class Further(Maker): ...\nown = Further()\n",
        "def own(**options):\n    def later(registry, function):\n        registry['app'].task(**options)(function)\n"
        "    return later\n",
        "from celery import shared_task\nown = shared_task(acks_late=True)\n",
        "own = app.task\n",
        "from functools import partial\nown: object = partial(app.task, acks_late=True)\n",
        "own = lambda **options: app.task(acks_late=True, **options)\n",
        "from celery import shared_task\nclass own:\n    def __init__(self, **options): self.options = options\n"
        "    def __call__(self, function): return shared_task(acks_late=True, **self.options)(function)\n",
    ],
    ids=[
        "function",
        "function of a function",
        "inner task",
        "object",
        "unknown application",
        "name of a call",
        "name",
        "partial",
        "lambda",
        "class",
    ],
)
def test_task_of_own_decorator_is_named(tmp_path: Path, maker: str) -> None:
    text = APP + maker + "@own(queue='scales')\ndef weigh(crate): ...\n"
    project, gaps, mapped = imported(tmp_path, {"tasks.py": text})
    line = text[: text.index("@own")].count("\n") + 1
    assert (
        f"tasks.py:{line} the decorator own(queue='scales') of weigh, which makes a task in its own way"
        in gaps
    )
    assert project.actions["weigh"]["route"] == "scales"
    assert mapped <= 1  # the inner task of a maker is one, too


def test_own_decorator_of_another_file_named_task_is_named(tmp_path: Path) -> None:
    maker = APP + "def task(**options):\n    return app.task(autoretry_for=(KeyError,), **options)\n"
    uses = "from . import base\n@base.task(queue='scales')\ndef weigh(crate): ...\n"
    _, gaps, mapped = imported(tmp_path, {"base.py": maker, "tasks.py": uses})
    assert (
        "tasks.py:2 the decorator base.task(queue='scales') of weigh, which makes a task in its own way"
        in gaps
    )
    assert mapped == 0


def test_decorator_of_application_is_no_own_one(tmp_path: Path) -> None:
    maker = APP + "def task(**options):\n    return app.task(autoretry_for=(KeyError,), **options)\n"
    uses = "from .base import app\n@app.task\ndef weigh(crate): ...\n"
    _, gaps, mapped = imported(tmp_path, {"base.py": maker, "tasks.py": uses})
    assert mapped == 1
    assert not any("makes a task in its own way" in gap for gap in gaps)


@pytest.mark.parametrize(
    "line", ["weigh = app.task(weigh)", "app.task(name='x')(weigh)", "@app.task\nclass Weigh: ..."]
)
def test_task_without_decorated_function_is_named(tmp_path: Path, line: str) -> None:
    _, gaps, _ = imported(tmp_path, {"tasks.py": f"{APP}def weigh(crate): ...\n{line}\n"})
    assert "tasks.py:4 a task that app.task makes" in gaps


def action_of(project: Project) -> dict[str, Any]:
    return dict(project.actions["weigh"])


@pytest.mark.parametrize(
    "files",
    [
        {"tasks.py": APP + TASK + "app.conf['task_time_limit'] = 600\n"},
        {"tasks.py": APP + TASK + "CELERY = {'task_time_limit': 600}\n"},
        {"tasks.py": APP + TASK + "web.config.from_mapping(CELERY=dict(task_time_limit=600))\n"},
        {
            "tasks.py": "from celery import Celery\nfrom . import playground\n"
            "app = Celery('depot', config_source=playground)\n" + TASK,
            "playground.py": "from .defaults import *\n",
            "defaults.py": "task_time_limit = 600\n",
        },
        {
            "tasks.py": APP + "app.config_from_object('depot.conf:Config')\n" + TASK,
            "conf.py": "class Config:\n    task_time_limit = 600\n",
        },
        {
            "tasks.py": APP + "from depot.conf import Config\napp.config_from_object(Config)\n" + TASK,
            "conf.py": "class Config:\n    task_time_limit = 600\n",
        },
    ],
    ids=["item", "dict", "mapping", "module with all names of another", "class by its path", "class"],
)
def test_setting_at_each_place_is_mapped(tmp_path: Path, files: dict[str, str]) -> None:
    project, _, _ = imported(tmp_path, files)
    assert action_of(project)["timeout"] == 600


@pytest.mark.parametrize(
    ("text", "gap"),
    [
        ("if PROD:\n    app.conf.task_time_limit = 600\n", "6 the setting app.conf.task_time_limit"),
        ("CELERY = {'task_time_limit': LIMIT}\n", "5 the setting task_time_limit"),
        ("web.config.from_mapping(CELERY=dict(task_time_limit=LIMIT))\n", "5 the setting task_time_limit"),
        ("app.conf.update(web.config)\n", "5 settings of web.config"),
        (
            "app.config_from_object('x', namespace='DEPOT')\n",
            "5 settings with the prefix DEPOT_, which are not read",
        ),
    ],
)
def test_setting_that_is_not_mapped_is_named(tmp_path: Path, text: str, gap: str) -> None:
    project, gaps, _ = imported(tmp_path, {"tasks.py": APP + TASK + text})
    assert f"tasks.py:{gap}" in gaps
    assert action_of(project)["timeout"] is None


@pytest.mark.parametrize(
    "line",
    [
        "app.conf['beat_schedule'] = {'often': {'task': 'depot.tasks.weigh', 'schedule': 5, 'args': [1]}}",
        "web.config['CELERYBEAT_SCHEDULE'] = {'often': {'task': 'depot.tasks.weigh', 'schedule': 5, 'args': [1]}}\n"
        "app.conf.update(web.config)",
        "CELERY = {'beat_schedule': {'often': {'task': 'depot.tasks.weigh', 'schedule': 5, 'args': [1]}}}",
        "app.conf.update({'beat_schedule': {'often': {'task': 'depot.tasks.weigh', 'schedule': 5, 'args': [1]}}})",
    ],
)
def test_schedule_at_each_place_is_mapped(tmp_path: Path, line: str) -> None:
    project, _, _ = imported(tmp_path, {"__init__.py": "", "tasks.py": f"{APP}{TASK}{line}\n"})
    assert {name: entry["every"] for name, entry in project.schedules.items()} == {"often": 5}


def test_schedule_that_two_files_give_is_named(tmp_path: Path) -> None:
    setting = "CELERY_BEAT_SCHEDULE = {{'often': {{'task': 'depot.tasks.weigh', 'schedule': {}}}}}\n"
    read = "app.config_from_object('django.conf:settings', namespace='CELERY')\n"
    _, gaps, _ = imported(
        tmp_path, {"tasks.py": APP + read + TASK, "base.py": setting.format(5), "prod.py": setting.format(60)}
    )
    assert "prod.py:1 CELERY_BEAT_SCHEDULE, which base.py:1 sets too" in gaps


@pytest.mark.parametrize("order", [("depot.tasks.weigh", "*"), ("*", "depot.tasks.weigh")])
def test_annotation_of_all_replaces_that_of_a_task(tmp_path: Path, order: tuple[str, str]) -> None:
    limits = {"*": "10/s", "depot.tasks.weigh": "1/s"}
    annotations = {key: {"rate_limit": limits[key]} for key in order}
    text = f"{APP}{TASK}app.conf.task_annotations = {annotations}\n"
    project, _, _ = imported(tmp_path, {"__init__.py": "", "tasks.py": text})
    assert action_of(project)["limits"] == [{"rate": {"count": 1, "seconds": 0.1}}]
    app = Celery("depot", broker="memory://", set_as_current=False)
    app.conf.task_annotations = annotations
    assert app.task(action_of, name="depot.tasks.weigh", shared=False).rate_limit == "10/s"


def test_exact_route_comes_before_pattern(tmp_path: Path) -> None:
    routes = {"depot.*": {"queue": "all"}, "depot.tasks.weigh": {"queue": "scales"}}
    text = f"{APP}{TASK}app.conf.task_routes = {routes}\n"
    project, _, _ = imported(tmp_path, {"__init__.py": "", "tasks.py": text})
    assert action_of(project)["route"] == "scales"


@pytest.mark.parametrize(
    "text",
    [
        "if PROD:\n    app.conf.timezone = 'Europe/Paris'\n",
        "CELERY = {'timezone': getenv('ZONE'), 'task_acks_late': True}\n",
    ],
)
def test_zone_that_only_running_tells_disables_crontabs(tmp_path: Path, text: str) -> None:
    schedule = "app.conf.beat_schedule = {'often': {'task': 'depot.tasks.weigh', 'schedule': crontab(hour=5), 'args': [1]}}\n"
    project, gaps, _ = imported(tmp_path, {"__init__.py": "", "tasks.py": APP + TASK + text + schedule})
    assert project.schedules["often"]["enabled"] is False
    assert any("the zone of the schedule often is computed" in gap for gap in gaps)


SENT_TO_A_QUEUE = (
    "app.conf.beat_schedule = {'x': {'task': 'depot.tasks.weigh', 'schedule': 5, 'args': [1], "
    "'options': {'queue': Queues.OFTEN}}}\n"
)


def test_queue_that_a_class_names_is_read(tmp_path: Path) -> None:
    names = "class Queues:\n    OFTEN = 'often'\n"
    text = SENT_TO_A_QUEUE
    project, _, _ = imported(tmp_path, {"__init__.py": "", "tasks.py": APP + TASK + text, "names.py": names})
    assert project.workflows["weigh_on_often"]["tasks"]["run"]["route"] == "often"


def test_name_of_a_class_with_two_values_is_none_of_them(tmp_path: Path) -> None:
    names = "class Queues:\n    OFTEN = 'often'\nQueues.OFTEN = 'seldom'\n"
    text = SENT_TO_A_QUEUE
    project, gaps, _ = imported(
        tmp_path, {"__init__.py": "", "tasks.py": APP + TASK + text, "names.py": names}
    )
    assert project.workflows == {}
    assert "tasks.py:5 queue in options of the schedule x" in gaps


def test_application_with_a_decorator_of_its_own_is_named(tmp_path: Path) -> None:
    text = (
        "from celery import Celery\nclass Depot(Celery):\n    def task(self, *args, **options):\n"
        "        return super().task(*args, acks_late=True, **options)\napp = Depot('depot')\n"
    )
    _, gaps, _ = imported(tmp_path, {"tasks.py": text + TASK})
    assert "tasks.py:3 the method task of a class of applications, which makes tasks in its own way" in gaps


@pytest.mark.parametrize(
    ("decorators", "line", "named"),
    [
        ("@app.task\n@throttled('2/4s')\n", 4, "throttled('2/4s')"),
        ("@every(crontab='0 2 * * *')\n@app.task\n", 3, "every(crontab='0 2 * * *')"),
        ("@app.task(bind=True)\n@transaction.atomic\n", 4, "transaction.atomic"),
    ],
)
def test_decorator_beside_that_of_celery_is_named(
    tmp_path: Path, decorators: str, line: int, named: str
) -> None:
    text = APP + decorators + "def weigh(self): ...\n"
    _, gaps, mapped = imported(tmp_path, {"tasks.py": text})
    assert f"tasks.py:{line} the decorator {named} of weigh" in gaps
    assert mapped == 1
    assert not any("decorator app.task" in gap for gap in gaps)


def test_parameters_without_a_name_are_named(tmp_path: Path) -> None:
    text = APP + "@app.task\ndef weigh(*crates): ...\n"
    _, gaps, _ = imported(tmp_path, {"tasks.py": text})
    assert "tasks.py:4 the parameters *crates of weigh" in gaps


def test_name_of_a_task_is_no_decorator(tmp_path: Path) -> None:
    text = APP + "def lift(crate): ...\nregister = app.task(lift)\n@register\ndef weigh(crate): ...\n"
    project, gaps, _ = imported(tmp_path, {"tasks.py": text})
    assert "weigh" not in project.actions
    assert "tasks.py:4 a task that app.task makes" in gaps


@pytest.mark.parametrize("marker", ["manage.py", "pyproject.toml", "setup.py"])
def test_repository_with_a_stray_init_is_no_package(tmp_path: Path, marker: str) -> None:
    """Its packages are imported from its folder, so that the names of tasks begin with theirs."""
    schedule = (
        "app.conf.beat_schedule = {'s': {'task': 'yard.tasks.weigh', 'schedule': 60.0, 'args': (1,)}}\n"
    )
    files = {"__init__.py": "", marker: "", "yard/tasks.py": APP + TASK, "yard/celery.py": APP + schedule}
    project, gaps, _ = imported(tmp_path, files)
    assert project.schedules["s"]["action"] == "depot.weigh"
    assert not any("in no file" in gap for gap in gaps)


ENTRY = "{'task': 'depot.tasks.weigh', 'schedule': 5, 'args': [1]}"
ITEM = f"['often'] = {ENTRY}\n"
WHOLE = f"app.conf.beat_schedule = {{'seldom': {ENTRY}}}\n"


@pytest.mark.parametrize("setting", ["app.conf.beat_schedule", "beat_schedule"])
def test_item_of_the_beat_schedule_is_mapped(tmp_path: Path, setting: str) -> None:
    project, _, _ = imported(tmp_path, {"tasks.py": f"{APP}{TASK}{WHOLE}{setting}{ITEM}"})
    assert {name: entry["every"] for name, entry in project.schedules.items()} == {"seldom": 5, "often": 5}


@pytest.mark.parametrize(
    ("text", "gap"),
    [
        (
            f"if PROD:\n    app.conf.beat_schedule{ITEM}else:\n    app.conf.beat_schedule{ITEM}",
            "7 the item often of beat_schedule, which counts where PROD",
        ),
        (
            f"def setup():\n    app.conf.beat_schedule{ITEM}",
            "7 the item often of beat_schedule, which counts within setup",
        ),
        (
            f"for x in y:\n    app.conf.beat_schedule{ITEM}",
            "7 the item often of beat_schedule, which counts within for",
        ),
        (
            f"app.conf.beat_schedule{ITEM}" * 2,
            "6 the item often of beat_schedule, which also stands at another place",
        ),
        (
            "app.conf.beat_schedule" + ITEM.replace("often", "seldom"),
            "6 the item seldom of beat_schedule, which also stands at another place",
        ),
    ],
)
def test_item_that_may_not_count_is_named_and_not_imported(tmp_path: Path, text: str, gap: str) -> None:
    project, gaps, _ = imported(tmp_path, {"tasks.py": f"{APP}{TASK}{WHOLE}{text}"})
    assert list(project.schedules) == ["seldom"]
    assert f"tasks.py:{gap}" in gaps
    assert not any("The import reads all of it" in text for text in gaps)


def test_schedules_that_are_left_out_are_counted(tmp_path: Path) -> None:
    unread = f"CELERYBEAT_SCHEDULE = {{'x': {ENTRY}, 'y': {ENTRY}}}\nif PROD:\n    beat_schedule{ITEM}"
    for name, text in {"__init__.py": "", "tasks.py": APP + TASK + WHOLE, "settings.py": unread}.items():
        (tmp_path / "depot").mkdir(exist_ok=True)
        (tmp_path / "depot" / name).write_text(text)
    source = CeleryProject(tmp_path / "depot")
    source.mapped()
    assert (source.report.found["schedules"], source.report.mapped["schedules"]) == (4, 2)


def test_canvas_that_lint_refuses_is_not_counted(tmp_path: Path) -> None:
    text = APP + "from celery import chain\n@app.task\ndef weigh(crate, size): ...\n"
    text += "def go():\n    return chain(weigh.s(1, 2), weigh.s(3)).delay()\n"
    text += "def off():\n    return chain(weigh.s(1), weigh.s()).delay()\n"
    (tmp_path / "depot").mkdir()
    (tmp_path / "depot" / "tasks.py").write_text(text)
    source = CeleryProject(tmp_path / "depot")
    project = source.mapped()
    keep_applicable(project, source.report)
    counts = [
        counter["canvases"] for counter in (source.report.found, source.report.mapped, source.report.applied)
    ]
    assert counts == [2, 1, 1], source.report.gaps


@pytest.mark.parametrize(
    ("text", "call"),
    [
        (
            "@app.task(bind=True)\ndef weigh(task, crate):\n    raise task.retry(countdown=5, max_retries=1)\n",
            "5 the call task.retry(countdown=5, max_retries=1)",
        ),
        (
            "@app.task(bind=True)\ndef weigh(own, crate):\n    again(own)\ndef again(other):\n    other.retry()\n",
            "7 the call other.retry()",
        ),
    ],
)
def test_retry_of_a_task_under_any_name_is_named(tmp_path: Path, text: str, call: str) -> None:
    _, gaps, _ = imported(tmp_path, {"tasks.py": APP + text})
    assert f"tasks.py:{call}" in gaps


def test_options_of_the_class_of_a_task_are_named(tmp_path: Path) -> None:
    text = (
        APP
        + "class Lifting(app.Task):\n    queue = 'lifts'\n    autoretry_for = (KeyError,)\n    abstract = True\n"
    )
    _, gaps, _ = imported(tmp_path, {"tasks.py": text + "@app.task(base=Lifting)\ndef weigh(crate): ...\n"})
    assert "tasks.py:4 queue of the class Lifting, the base of weigh" in gaps
    assert "tasks.py:5 autoretry_for of the class Lifting, the base of weigh" in gaps
    assert not any("abstract" in gap for gap in gaps)


def test_row_of_another_database_is_no_application(tmp_path: Path) -> None:
    text = "from sqlalchemy_celery_beat.models import PeriodicTask\nrow = PeriodicTask(name='x')\n"
    _, gaps, _ = imported(tmp_path, {"tasks.py": APP + TASK + text})
    assert not any("the application PeriodicTask" in gap for gap in gaps)


@pytest.mark.parametrize(
    ("text", "subject", "advice"),
    [
        (
            "@app.task(max_retires=3)\ndef lift(): ...\n",
            "max_retires of lift",
            "Celery does not know this option",
        ),
        (
            "CELERY_IGNORE_RESULT = True\n",
            "the setting CELERY_IGNORE_RESULT",
            "Results are kept in any case.",
        ),
        ("class Lift(app.Task): ...\n", "app.Task of the application", "write an action with the options"),
        ("app.register_task(lift)\n", "app.register_task of the application", "write an action for it"),
        (
            "import celery\n@celery.signals.worker_ready.connect\ndef ready(): ...\n",
            "celery.signals.worker_ready.connect of celery",
            "at the start of the worker",
        ),
        (
            "from celery import chain\nchain(x).delay()\n",
            "chain(x).delay of celery.chain",
            "Write it as a workflow.",
        ),
    ],
)
def test_gap_says_the_work_by_hand(tmp_path: Path, text: str, subject: str, advice: str) -> None:
    (tmp_path / "tasks.py").write_text(APP + TASK + text)
    source = CeleryProject(tmp_path / "tasks.py")
    source.mapped()
    by_hand = [gap.by_hand for gap in source.report.gaps if gap.what == subject]
    assert len(by_hand) == 1, source.report.gaps
    assert advice in by_hand[0]


@pytest.mark.parametrize(
    "maker",
    [
        "def own(signal):\n    def wrap(function):\n        made = task(function)\n        signal.connect(made)\n"
        "        return made\n    return wrap\n",
        "def own(signal):\n    if signal:\n        return task(acks_late=True)\n    return task()\n",
        "def own(signal):\n    made = task(acks_late=True)\n    return made\n",
    ],
    ids=["inner name", "condition", "name"],
)
def test_decorator_that_returns_a_local_maker_is_named(tmp_path: Path, maker: str) -> None:
    head = APP + "def task(*args, **options):\n    return app.task(*args, **options)\n"
    text = head + maker + "@own('full')\ndef weigh(crate): ...\n"
    project, gaps, _ = imported(tmp_path, {"tasks.py": text})
    line = text[: text.index("@own")].count("\n") + 1
    assert f"tasks.py:{line} the decorator own('full') of weigh, which makes a task in its own way" in gaps
    assert "weigh" in project.actions


def test_local_name_makes_no_decorator_of_that_name_a_maker(tmp_path: Path) -> None:
    maker = (
        APP
        + "def task(*args, **options):\n    return app.task(*args, **options)\n"
        + "def wire(function):\n    route = task(function)\n    route.delay()\n"
        + "class Jobs:\n    def find(self, key):\n        task = self.rows[key]\n        return task\n"
        + "    def get(self, key):\n        return self.find(key)\n"
    )
    uses = "@pages.route('/crates')\ndef crates(): ...\n@pages.get('/jobs')\ndef jobs(): ...\n"
    project, gaps, _ = imported(tmp_path, {"base.py": maker, "pages.py": uses})
    assert not project.actions
    assert not any("makes a task in its own way" in gap for gap in gaps)


def test_decorator_within_a_function_may_be_a_local_maker(tmp_path: Path) -> None:
    text = APP + "def wire():\n    own = app.task(acks_late=True)\n    @own\n    def weigh(crate): ...\n"
    project, gaps, _ = imported(tmp_path, {"tasks.py": text})
    assert "weigh" in project.actions
    assert "tasks.py:5 the decorator own of weigh, which makes a task in its own way" in gaps


@pytest.mark.parametrize("name", ["tests.py", "weigh_test.py", "shop/scales_test.py"])
def test_file_of_tests_is_named_and_not_read(tmp_path: Path, name: str) -> None:
    files = {"tasks.py": APP + TASK, name: "from depot.tasks import app\n@app.task\ndef probe(): ...\n"}
    project, gaps, _ = imported(tmp_path, files)
    assert list(project.actions) == ["weigh"]
    assert f"{name}:2 {name.rpartition('/')[2]} is not read, since it is a file of tests" in gaps


def test_settings_for_tests_are_read(tmp_path: Path) -> None:
    files = {"tasks.py": APP + TASK, "settings_test.py": "CELERY_TASK_SOFT_TIME_LIMIT = 5\n"}
    _, gaps, _ = imported(tmp_path, files)
    assert "settings_test.py:1 the setting CELERY_TASK_SOFT_TIME_LIMIT" in gaps


def test_dict_of_settings_is_not_said_to_be_read_by_nothing(tmp_path: Path) -> None:
    files = {
        "tasks.py": APP + TASK,
        "config.py": "CELERY_CONFIG = {'task_soft_time_limit': 5}\nCELERY_OTHER = {'pen': 1}\n",
    }
    (tmp_path / "depot").mkdir()
    for name, text in files.items():
        (tmp_path / "depot" / name).write_text(text)
    source = CeleryProject(tmp_path / "depot")
    source.mapped()
    advice = {gap.what: gap.by_hand for gap in source.report.gaps if gap.file == "config.py"}
    assert "reads nothing" not in advice["the setting CELERY_CONFIG"]
    assert "reads nothing" in advice["the setting CELERY_OTHER"]
    assert "the setting task_soft_time_limit" in advice


def test_dict_that_only_ends_like_the_configuration_has_no_line(tmp_path: Path) -> None:
    text = "site_conf = {}\nsite_conf['title'] = 'Depot'\nsite_conf['task_soft_time_limit'] = 5\n"
    _, gaps, _ = imported(tmp_path, {"tasks.py": APP + TASK, "site.py": "import celery\n" + text})
    assert "site.py:4 the setting site_conf['task_soft_time_limit']" in gaps
    assert not any("title" in gap for gap in gaps)


def test_option_that_changes_nothing_of_another_object_has_no_line(tmp_path: Path) -> None:
    text = "def login(user):\n    user.backend = 'x'\n    user.rate_limit = '1/m'\n"
    _, gaps, _ = imported(tmp_path, {"tasks.py": APP + TASK, "views.py": "import celery\n" + text})
    assert "views.py:4 the option user.rate_limit, which is set later" in gaps
    assert not any("user.backend" in gap for gap in gaps)


@pytest.mark.parametrize(
    ("decorator", "is_maker"),
    [
        ("connect('full')", True),
        ("base.connect('full')", True),
        ("depot.base.connect('full')", True),
        ("full.connect", False),
        ("Crate.on_create.connect", False),
    ],
)
def test_method_of_a_signal_is_no_maker_of_that_name(tmp_path: Path, decorator: str, is_maker: bool) -> None:
    maker = APP + "def connect(signal):\n    return app.task(signal=signal)\n"
    head = "import depot.base\nfrom depot import base\nfrom depot.base import connect\nfrom signals import full\n"
    uses = f"{head}@{decorator}\ndef weigh(crate): ...\n"
    project, gaps, _ = imported(tmp_path, {"base.py": maker, "tasks.py": uses})
    assert ("weigh" in project.actions) is is_maker
    assert any("makes a task in its own way" in gap for gap in gaps) is is_maker


@pytest.mark.parametrize("name", ["CELERY_BEAT_SCHEDULE", "CELERYBEAT_SCHEDULE", "app.conf.beat_schedule"])
def test_file_of_tests_with_schedules_is_named(tmp_path: Path, name: str) -> None:
    files = {"tasks.py": APP + TASK, "tests/settings.py": f"DEBUG = True\n{name} = {{}}\n"}
    _, gaps, _ = imported(tmp_path, files)
    assert "tests/settings.py:2 settings.py is not read, since it is a file of tests" in gaps


@pytest.mark.parametrize(
    "call", ["'{0.name}'.format(weigh)", "f'{1}'.format(weigh)", "', '.join([weigh.name, weigh])"]
)
def test_text_of_a_task_is_harmless(tmp_path: Path, call: str) -> None:
    field = "class Field:\n    def format(self, value):\n        value.rate = 1\n        return value\n"
    uses = f"from depot.tasks import weigh\nprint({call})\n"
    files = {"tasks.py": APP + TASK, "fields.py": field, "uses.py": uses}
    _, gaps, mapped = imported(tmp_path, files)
    assert mapped == 1
    assert not [gap for gap in gaps if gap.startswith(("fields.py", "uses.py"))]
