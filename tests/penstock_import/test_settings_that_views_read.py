"""Code that only reads the settings of schedules: it makes no other value a setting, and takes no schedule its zone."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.penstock_import.test_reviewed_changes import of_application, texts

FILES = {
    "__init__.py": "",
    "celery.py": "import os\nfrom celery import Celery\n"
    "os.environ.setdefault('DJANGO_SETTINGS_MODULE', 'depot.settings')\napp = Celery('depot')\n"
    "app.config_from_object('django.conf:settings', namespace='CELERY')\n",
    "tasks.py": "from celery import shared_task\n@shared_task\ndef weigh(): ...\n",
    "settings.py": "from celery.schedules import crontab\nINSTALLED_APPS = []\nTIME_ZONE = 'Europe/Berlin'\n"
    "CELERY_BEAT_SCHEDULE = {'often': {'task': 'depot.tasks.weigh', 'schedule': crontab(hour=3, minute=5)}}\n",
    "other.py": "from django.views import generic\nKEY = 'links'\nclass Page(generic.TemplateView):\n"
    "    def get_context_data(self, **kwargs):\n        context = super().get_context_data(**kwargs)\n"
    "        context['title'] = 'x'\n        context[KEY] = []\n        for name in self.names():\n"
    "            context[name] = 1\n        return context\n",
}
VIEW = """\
from django.conf import settings
from django.views import generic
class Jobs(generic.TemplateView):
    def get_context_data(self, **kwargs):
        context = super().get_context_data(**kwargs)
        jobs = []
        {}
        context["jobs"] = jobs
        return context
"""
READS = [
    "for key, value in settings.CELERY_BEAT_SCHEDULE.items():\n"
    "            jobs.append({'name': key, 'task': value['task'], 'schedule': str(value['schedule'])})",
    "for key, value in settings.CELERY_BEAT_SCHEDULE.items():\n"
    "            jobs.append((key, value.get('task'), f\"{value['schedule']}\"))",
    "jobs += [key for key, value in settings.CELERY_BEAT_SCHEDULE.items()]",
    "jobs = {key: value['task'] for key, value in settings.CELERY_BEAT_SCHEDULE.items()}",
    "jobs.append(settings.CELERY_BEAT_SCHEDULE['often']['task'])",
]


@pytest.mark.parametrize("read", READS)
def test_reading_a_schedule_makes_no_other_value_a_setting(tmp_path: Path, read: str) -> None:
    _, report = of_application(tmp_path, FILES | {"jobs.py": VIEW.format(read)})
    assert [text for text in texts(report) if "which changes a setting" in text] == []


@pytest.mark.parametrize("read", READS)
def test_reading_a_schedule_beside_a_second_application_keeps_the_zone(tmp_path: Path, read: str) -> None:
    second = "from celery import Celery\nfrom django.conf import settings\n"
    second += "sender = Celery('depot', broker=settings.CELERY_BROKER_URL)\n"
    project, _ = of_application(tmp_path, FILES | {"jobs.py": VIEW.format(read), "sender.py": second})
    (schedule,) = project.schedules.values()
    assert (schedule.get("timezone"), schedule.get("enabled", True)) == ("Europe/Berlin", True)


def test_schedules_of_a_second_application_leave_the_zone_open(tmp_path: Path) -> None:
    second = "from celery import Celery\nsender = Celery('sender')\nsender.conf.beat_schedule = {}\n"
    project, _ = of_application(tmp_path, FILES | {"sender.py": second})
    assert [schedule.get("enabled") for schedule in project.schedules.values()] == [False]


@pytest.mark.parametrize(
    "change",
    [
        "for key, value in settings.CELERY_BEAT_SCHEDULE.items():\n            value['schedule'] = 60",
        "for key, value in settings.CELERY_BEAT_SCHEDULE.items():\n            value['args'].append(1)",
        "for key, value in settings.CELERY_BEAT_SCHEDULE.items():\n            value['options']['queue'] = 'slow'",
        "jobs = [value for key, value in settings.CELERY_BEAT_SCHEDULE.items()]\n        jobs[0]['task'] = 'x'",
    ],
)
def test_change_of_an_entry_by_another_name_is_still_named(tmp_path: Path, change: str) -> None:
    _, report = of_application(tmp_path, FILES | {"jobs.py": VIEW.format(change)})
    assert [
        text for text in texts(report) if text.startswith("jobs.py:") and "which changes a setting" in text
    ]
