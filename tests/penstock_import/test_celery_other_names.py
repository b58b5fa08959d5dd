"""Settings, options and schedules that an application sets by other names than those of `app.conf` and of its tasks."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock_import.celery import CeleryProject
from penstock_import.project import Project
from tests.penstock_import.test_reviewed_changes import named, of_application, texts

HEAD = (
    "from celery import Celery\nfrom celery.schedules import crontab\nimport company\napp = Celery('depot')\n"
)
TASKS = "@app.task\ndef weigh(crate): ...\n"
BEAT = "app.conf.beat_schedule = {'n': {'task': 'tasks.weigh', 'schedule': crontab(hour=3, minute=0), 'args': [1]}}\n"


def imported(
    folder: Path, text: str, head: str = HEAD + TASKS + BEAT, **files: str
) -> tuple[Project, list[str]]:
    """Return the project of some modules, and what its gaps say of the lines behind `head`."""
    (folder / "tasks.py").write_text(head + text)
    for name, lines in files.items():
        (folder / f"{name}.py").write_text(lines)
    source = CeleryProject(folder)
    project = source.mapped()
    first = head.count("\n")
    return project, [
        f"{gap.file.removesuffix('.py')}:{gap.line - (first if gap.file == 'tasks.py' else 0)} {gap.what}"
        for gap in source.report.gaps
        if gap.file != "tasks.py" or gap.line > first
    ]


def is_named(gaps: list[str], line: int, words: str, file: str = "tasks") -> bool:
    return any(gap.startswith(f"{file}:{line} ") and words in gap for gap in gaps)


@pytest.mark.parametrize(
    "text",
    [
        "cfg = app.conf\ncfg.timezone = 'Europe/Paris'\ncfg.task_default_queue = 'dq'\n",
        "cfg = app.conf\ncfg.update(timezone='Europe/Paris', task_default_queue='dq')\n",
        "def made():\n    c = app.conf\n    c.timezone = 'Europe/Paris'\n    c.update({'task_default_queue': 'dq'})\nmade()\n",
        "getattr(app, 'conf').timezone = 'Europe/Paris'\ngetattr(app, 'conf').task_default_queue = 'dq'\n",
        "cfg = getattr(app, 'conf')\ncfg.timezone = 'Europe/Paris'\ncfg.task_default_queue = 'dq'\n",
    ],
)
def test_setting_by_a_plain_name_of_the_configuration_is_mapped(tmp_path: Path, text: str) -> None:
    project, _ = imported(tmp_path, text)
    assert project.schedules["n"]["timezone"] == "Europe/Paris"
    assert project.actions["weigh"]["route"] == "dq"


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("app.conf.setdefault('timezone', 'Europe/Paris')\n", 1, "setdefault"),
        ("app.conf.__setattr__('timezone', 'Europe/Paris')\n", 1, "__setattr__"),
        ("app.conf.__setitem__('timezone', 'Europe/Paris')\n", 1, "__setitem__"),
        ("setattr(app.conf, 'timezone', 'Europe/Paris')\n", 1, "setattr"),
        (
            "def tune(cfg):\n    cfg.timezone = 'Europe/Paris'\ntune(app.conf)\n",
            2,
            "the setting cfg.timezone",
        ),
        ("def tune(cfg):\n    cfg['timezone'] = 'Europe/Paris'\ntune(app.conf)\n", 2, "cfg['timezone']"),
        ("def tune(cfg):\n    cfg.update(timezone='Europe/Paris')\ntune(cfg=app.conf)\n", 2, "cfg.update"),
        (
            "class Holder: ...\nHolder.settings = app.conf\nHolder.settings.timezone = 'UTC+1'\n",
            3,
            "the setting Holder.settings.timezone",
        ),
        ("cfg = app.conf\ncfg.timezone = 'Europe/Paris'\ncfg = 1\n", 2, "the setting cfg.timezone"),
        ("first, second = app.conf, 1\nfirst.timezone = 'Europe/Paris'\n", 2, "first.timezone"),
    ],
)
def test_zone_by_another_name_is_named_and_disables_its_schedules(
    tmp_path: Path, text: str, line: int, words: str
) -> None:
    project, gaps = imported(tmp_path, text)
    assert is_named(gaps, line, words), gaps
    assert project.schedules["n"]["enabled"] is False


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("app.conf.setdefault('task_reject_on_worker_lost', True)\n", 1, "setdefault"),
        ("app.conf.__setattr__('task_soft_time_limit', 3)\n", 1, "__setattr__"),
        ("vars(app.conf).update(task_acks_late=True)\n", 1, "app.conf"),
        ("app.conf.__dict__['task_acks_late'] = True\n", 1, "app.conf.__dict__"),
        ("def tune(cfg):\n    cfg.task_acks_late = True\ntune(app.conf)\n", 2, "cfg.task_acks_late"),
        ("def settings():\n    return app.conf\nsettings().task_acks_late = True\n", 3, "settings().task"),
        ("for cfg in [app.conf]:\n    cfg.task_acks_late = True\n", 2, "cfg.task_acks_late"),
    ],
)
def test_setting_by_another_name_is_named(tmp_path: Path, text: str, line: int, words: str) -> None:
    _, gaps = imported(tmp_path, text)
    assert is_named(gaps, line, words), gaps


def test_name_of_the_configuration_that_is_a_member_is_named(tmp_path: Path) -> None:
    project, gaps = imported(tmp_path, "class All:\n    cfg = app.conf\nAll.cfg.timezone = 'Europe/Paris'\n")
    assert is_named(gaps, 3, "the setting All.cfg.timezone"), gaps
    assert project.schedules["n"]["enabled"] is False


def test_name_of_the_configuration_that_another_module_imports_is_named(tmp_path: Path) -> None:
    project, gaps = imported(
        tmp_path, "cfg = app.conf\n", other="from tasks import cfg\ncfg.timezone = 'Europe/Paris'\n"
    )
    assert is_named(gaps, 2, "cfg.timezone", "other"), gaps
    assert project.schedules["n"]["enabled"] is False


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("t = weigh\nt.rate_limit = '1/m'\n", 2, "t.rate_limit"),
        ("for each in (weigh,):\n    each.time_limit = 8\n    each.max_retries = 9\n", 3, "each.max_retries"),
        ("def slow(one):\n    one.rate_limit = '3/m'\nslow(weigh)\n", 2, "one.rate_limit"),
        ("for one in app.tasks.values():\n    one.acks_late = True\n", 2, "one.acks_late"),
        ("app.tasks['tasks.weigh'].acks_late = True\n", 1, "acks_late"),
        ("def slow(one):\n    setattr(one, 'rate_limit', '3/m')\nslow(weigh)\n", 2, "setattr(one"),
        ("def slow(one):\n    one.__setattr__('rate_limit', '3/m')\nslow(weigh)\n", 2, "__setattr__"),
        ("weigh.__dict__.update(rate_limit='3/m')\n", 1, "weigh.__dict__"),
        ("vars(weigh).update(rate_limit='3/m')\n", 1, "vars(weigh)"),
        ("weigh.rate_limit, weigh.queue = '3/m', 'q'\n", 1, "weigh.queue"),
        ("weigh.time_limit: int = 3\n", 1, "weigh.time_limit"),
        ("def slow(one, key):\n    setattr(one, key, '3/m')\nslow(weigh, 'rate_limit')\n", 2, "setattr(one"),
    ],
)
def test_option_by_another_name_of_a_task_is_named(tmp_path: Path, text: str, line: int, words: str) -> None:
    _, gaps = imported(tmp_path, text)
    assert is_named(gaps, line, words), gaps


def test_option_that_a_module_without_tasks_sets_is_named(tmp_path: Path) -> None:
    _, gaps = imported(
        tmp_path,
        "from other import slow\nslow(weigh)\n",
        other="def slow(one):\n    one.rate_limit = '3/m'\n",
    )
    assert is_named(gaps, 2, "one.rate_limit", "other"), gaps


def test_member_of_another_object_is_not_named_as_an_option(tmp_path: Path) -> None:
    _, gaps = imported(
        tmp_path,
        "class Job:\n    def __init__(self):\n        self.priority = 1\njob = Job()\njob.priority = 2\n",
    )
    assert not gaps


@pytest.mark.parametrize(
    ("bind", "is_proven"),
    [
        ("BIND", True),
        ("1", True),
        ("not False", True),
        ("not BIND2", True),
        ("company.BIND", False),
        ("f()", False),
    ],
)
def test_task_that_is_bound_has_no_parameter_for_itself(tmp_path: Path, bind: str, is_proven: bool) -> None:
    text = f"BIND = True\nBIND2 = 0\n@app.task(bind={bind})\ndef sort(self, crate): ...\n"
    project, gaps = imported(tmp_path, text)
    assert project.actions["sort"]["parameters"] == {"crate": {"required": True}}
    assert is_named(gaps, 3, "bind of sort is computed") is not is_proven


@pytest.mark.parametrize("bind", ["False", "0", "None", "not True"])
def test_task_that_is_not_bound_keeps_its_first_parameter(tmp_path: Path, bind: str) -> None:
    project, gaps = imported(tmp_path, f"@app.task(bind={bind})\ndef sort(self, crate): ...\n")
    assert [*project.actions["sort"]["parameters"]] == ["self", "crate"]
    assert not is_named(gaps, 1, "bind")


def test_options_that_are_spread_may_bind_a_task(tmp_path: Path) -> None:
    project, gaps = imported(tmp_path, "@app.task(**{'bind': True})\ndef sort(self, crate): ...\n")
    assert project.actions["sort"]["parameters"] == {"crate": {"required": True}}
    assert is_named(gaps, 1, "bind of sort is computed"), gaps


def test_arguments_by_position_of_a_task_that_may_be_bound_are_not_shifted(tmp_path: Path) -> None:
    text = "@app.task(bind=f())\ndef sort(one, crate=1): ...\n"
    text += "app.conf.beat_schedule['s'] = {'task': 'tasks.sort', 'schedule': 5, 'args': [4]}\n"
    project, gaps = imported(tmp_path, text)
    assert "s" not in project.schedules
    assert is_named(gaps, 3, "the schedule s"), gaps


@pytest.mark.parametrize(
    "call",
    [
        "company.setup(app)",
        "company.init(celery_app=app)",
        "company.setup(app.conf)",
        "company.instrument(weigh)",
        "company.instrument([weigh])",
        "company.Holder(task=weigh)",
        "[company.instrument(each) for each in (weigh,)]",
        "company.instrument(*[weigh])",
        "extend(app)",
        "company.init({'app': app})",
    ],
)
def test_call_of_code_outside_of_the_sources_is_named_once(tmp_path: Path, call: str) -> None:
    _, gaps = imported(tmp_path, f"from company import extend\n{call}\n")
    assert len([gap for gap in gaps if gap.startswith("tasks:2 ")]) == 1, gaps


def test_call_of_a_function_of_the_sources_is_not_named(tmp_path: Path) -> None:
    _, gaps = imported(
        tmp_path, "from other import ready\nready(app, weigh)\n", other="def ready(a, b): ...\n"
    )
    assert not gaps


def test_function_of_the_sources_that_hands_an_application_on_is_named(tmp_path: Path) -> None:
    _, gaps = imported(tmp_path, "def ready(one):\n    company.setup(one)\nready(app)\n")
    assert is_named(gaps, 2, "company.setup(one)"), gaps


@pytest.mark.parametrize(
    "line", ["self.kind.split(';')[0].replace('/x-', '/')", "self.request.FILES['csv'].chunks()"]
)
def test_method_of_a_value_is_no_canvas(tmp_path: Path, line: str) -> None:
    _, gaps = imported(tmp_path, f"class View:\n    def see(self):\n        return {line}\n")
    assert not gaps


def test_argument_with_settings_of_an_application_is_known(tmp_path: Path) -> None:
    head = "from celery import Celery\n"
    project, gaps = imported(tmp_path, "app = Celery('d', changes={'task_acks_late': True})\n" + TASKS, head)
    assert project.actions["weigh"]["on_worker_loss"] == "rerun"
    assert is_named(gaps, 1, "the argument changes"), gaps


def test_queue_of_a_schedule_is_mapped_beside_other_options(tmp_path: Path) -> None:
    text = BEAT.replace("'args': [1]", "'args': [1], 'options': {'priority': 1, 'queue': 'dock'}")
    project, gaps = imported(tmp_path, text, HEAD + TASKS)
    assert project.workflows["weigh_on_dock"]["tasks"]["run"]["route"] == "dock"
    assert project.schedules["n"]["action"].endswith(".weigh_on_dock")
    assert project.schedules["n"]["priority"] == 1
    assert is_named(gaps, 1, "priorities of schedules"), gaps


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("every = app.add_periodic_task\nevery(9.0, weigh.s(1), name='m')\n", 1, "app.add_periodic_task, which is called"),
        ("@app.on_after_configure.connect\ndef begin(sender, **rest):\n    every = sender.add_periodic_task\n"
         "    every(9.0, weigh.s(1), name='m')\n", 3, "sender.add_periodic_task, which is called"),
        ("getattr(app, 'add_periodic_task')(9.0, weigh.s(1), name='m')\n", 1, "'add_periodic_task', which is called"),
        ("app.conf.beat_schedule['n']['schedule'] = 30\n", 1, "= 30, which changes an entry"),
        ("X = {'hour': 4}\napp.conf.beat_schedule['m'] = {'task': 'tasks.weigh', 'schedule': crontab(**X)}\n", 2,
         "**X of a crontab"),
    ],
)  # fmt: skip
def test_schedule_that_is_given_in_another_way_is_named(
    tmp_path: Path, text: str, line: int, words: str
) -> None:
    project, gaps = imported(tmp_path, text)
    assert set(project.schedules) == {"n"}
    assert is_named(gaps, line, words), gaps


def test_setting_of_beat_has_one_line_with_its_advice(tmp_path: Path) -> None:
    (tmp_path / "tasks.py").write_text(f"{HEAD}app.conf.beat_max_loop_interval = 5\n")
    source = CeleryProject(tmp_path)
    source.mapped()
    gaps = [gap for gap in source.report.gaps if gap.line == HEAD.count("\n") + 1]
    assert [gap.what for gap in gaps] == ["the setting app.conf.beat_max_loop_interval"]
    assert gaps[0].by_hand.startswith("Nothing is to be done")


def test_method_task_of_a_base_of_an_application_class_is_named(tmp_path: Path) -> None:
    late = "    def task(self, *args, **options):\n        return super().task(*args, acks_late=True, **options)\n"
    classes = f"class Late:\n{late}class Own(Late, Celery): ...\nclass Further(Own):\n{late}"
    head = f"from celery import Celery\n{classes}app = Further('depot')\n"
    project, gaps = imported(tmp_path, TASKS, head="", classes=head)
    assert is_named(gaps, 3, "the method task of a class of applications", "classes"), gaps
    assert is_named(gaps, 7, "the method task of a class of applications", "classes"), gaps
    assert project.actions["weigh"]["on_worker_loss"] == "fail"


def test_options_of_a_base_of_the_class_of_a_task_are_named(tmp_path: Path) -> None:
    text = (
        "class Tries:\n    max_retries: int = 5\nclass Base(Tries, app.Task):\n    rate_limit = '3/m'\n"
        "@app.task(base=Base)\ndef sort(): ...\n"
    )
    _, gaps = imported(tmp_path, text)
    assert is_named(gaps, 2, "max_retries of the class Tries, the base of sort"), gaps
    assert is_named(gaps, 4, "rate_limit of the class Base, the base of sort"), gaps


@pytest.mark.parametrize(
    "code",
    [
        "class Depot:\n    @property\n    def queue(self):\n        self._queue = Celery('depot')\n        return self._queue\n",
        "class Depot:\n    def __init__(self):\n        self.queue = Celery('depot')\n",
        "class Depot:\n    queue: Celery\n    def __init__(self):\n        self.queue: Celery = Celery('depot')\n",
    ],
)
def test_application_that_is_a_member_is_followed(tmp_path: Path, code: str) -> None:
    files = {
        "depot.py": f"from celery import Celery\n{code}",
        "views.py": "def stop(depot, id):\n    depot.queue.control.revoke(id, terminate=True)\n",
    }
    _, report = of_application(tmp_path, files)
    assert named(report, "views.py:2 depot.queue.control of the application"), texts(report)


@pytest.mark.parametrize("read", ["extensions['celery']", "extensions.get('depot-celery')"])
def test_application_that_is_an_extension_is_followed(tmp_path: Path, read: str) -> None:
    files = {
        "tasks.py": "from celery import shared_task\nfrom flask import current_app\n@shared_task\ndef weigh(): ...\n"
        f"def stop(id):\n    queue = current_app.{read}\n    queue.control.revoke(id)\n",
    }
    _, report = of_application(tmp_path, files)
    assert named(report, "tasks.py:7 queue.control of the application"), texts(report)


def test_extension_of_another_name_is_no_application(tmp_path: Path) -> None:
    text = "from celery import shared_task\n@shared_task\ndef weigh(app):\n    app.extensions['mail'].send('x')\n"
    _, report = of_application(tmp_path, {"tasks.py": text})
    assert not any("of the application" in line for line in texts(report))


def test_argument_of_an_application_of_an_own_class_is_named(tmp_path: Path) -> None:
    text = (
        "from celery import Celery, Task\nclass Depot(Celery):\n    pass\nclass Recorded(Task):\n    acks_late = True\n"
        "app = Depot('depot', task_cls=Recorded)\n@app.task\ndef weigh(): ...\n"
    )
    _, report = of_application(tmp_path, {"tasks.py": text})
    assert named(report, "tasks.py:6 the argument task_cls | Move the code of the class"), texts(report)


@pytest.mark.parametrize("base", ["Task", "Recorded"])
def test_application_that_a_class_of_tasks_uses_is_followed(tmp_path: Path, base: str) -> None:
    text = (
        "from celery import Celery, Task\napp = Celery('depot')\nclass Recorded(Task): ...\n"
        f"class Kept({base}):\n    def stop(self, id):\n        self.app.control.revoke(id, terminate=True)\n"
        "class Other:\n    def stop(self, id):\n        self.app.control.revoke(id)\n"
    )
    _, report = of_application(tmp_path, {"tasks.py": text})
    assert named(report, "tasks.py:6 self.app.control of the application"), texts(report)
    assert not any(line.startswith("tasks.py:9") for line in texts(report))
