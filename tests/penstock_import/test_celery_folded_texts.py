"""Texts of a schedule that are made of constants and of the defaults of environment variables."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.penstock_import.test_reviewed_changes import APP, named, of_application, texts

READ = "import os\nEVERY = os.environ.get('EVERY', 30)\n"
PLAIN = "import os\nEVERY = 30\n"


def source_of(constants: str, when: str) -> dict[str, str]:
    text = (
        f"{constants}from celery.schedules import crontab\nfrom datetime import timedelta\n{APP}"
        f"app.conf.beat_schedule = {{'poll': {{'task': 'depot.tasks.weigh', 'schedule': {when}}}}}\n"
        "@app.task\ndef weigh(): ...\n"
    )
    return {"__init__.py": "", "tasks.py": text}


FOLDED = (
    "crontab(minute=f'*/{EVERY}')",
    "crontab(minute='*/%s' % EVERY)",
    "crontab(minute='*/%d' % (EVERY,))",
    "crontab(minute='*/{}'.format(EVERY))",
    "crontab(minute='*/{0}'.format(EVERY))",
    "crontab(minute='*/{every}'.format(every=EVERY))",
    "crontab(minute='*/' + str(EVERY))",
)


@pytest.mark.parametrize("constants", [READ, PLAIN])
@pytest.mark.parametrize("when", FOLDED)
def test_text_of_constants_in_a_crontab_is_folded(tmp_path: Path, constants: str, when: str) -> None:
    project, report = of_application(tmp_path, source_of(constants, when))
    assert project.schedules["poll"]["cron"] == "*/30 * * * *", texts(report)
    line = "the variable EVERY of the schedule poll, imported with its default 30"
    assert any(line in other for other in texts(report)) is (constants == READ)


@pytest.mark.parametrize(
    "when",
    [
        "crontab(minute=f'*/{EVERY:>99999}')",
        "crontab(minute=f'*/{EVERY!r}')",
        "crontab(minute='*/%99999d' % EVERY)",
        "crontab(minute='*/{:>99999}'.format(EVERY))",
        "crontab(minute='*/%s' % (EVERY, EVERY))",
        "crontab(minute=f'*/{EVERY}9')",
        "crontab(minute=f'*/{other()}')",
    ],
)
def test_text_that_is_not_folded_claims_no_import(tmp_path: Path, when: str) -> None:
    project, report = of_application(tmp_path, source_of(READ, when))
    assert "poll" not in project.schedules or "9" in when
    if "poll" not in project.schedules:
        assert any("the schedule poll: " in line for line in texts(report))
        assert not any("imported with its default" in line for line in texts(report)), texts(report)


def test_default_of_a_schedule_that_is_not_made_is_named(tmp_path: Path) -> None:
    files = source_of(READ, "crontab(minute=f'*/{EVERY}', hour=other())")
    _, report = of_application(tmp_path, files)
    assert named(
        report, "tasks.py:7 the variable EVERY of the schedule poll, with the default 30 | Write the value"
    )


def test_default_is_named_again_where_it_is_imported(tmp_path: Path) -> None:
    files = source_of(READ, "crontab(minute=f'*/{EVERY}', hour=other())")
    files["tasks.py"] += (
        "app.conf.beat_schedule['next'] = {'task': 'depot.tasks.weigh', 'schedule': crontab(minute=f'*/{EVERY}')}\n"
    )
    project, report = of_application(tmp_path, files)
    assert project.schedules["next"]["cron"] == "*/30 * * * *"
    assert any("EVERY of the schedule next, imported with its default 30" in line for line in texts(report))


@pytest.mark.parametrize("reading", ["env('ZONE')", "env.str('ZONE')"])
def test_zone_is_the_default_that_the_constructor_of_env_gives(tmp_path: Path, reading: str) -> None:
    settings = (
        "import environ\nfrom celery.schedules import crontab\nenv = environ.Env(ZONE=(str, 'UTC'), OTHER=str)\n"
        f"TIME_ZONE = {reading}\nCELERY_TIMEZONE = TIME_ZONE\n"
        "CELERY_BEAT_SCHEDULE = {'poll': {'task': 'depot.tasks.weigh', 'schedule': crontab(hour=3)}}\n"
    )
    start = (
        f"{APP}app.config_from_object('depot.settings', namespace='CELERY')\n@app.task\ndef weigh(): ...\n"
    )
    project, report = of_application(
        tmp_path, {"__init__.py": "", "settings.py": settings, "tasks.py": start}
    )
    assert "enabled" not in project.schedules["poll"], texts(report)
    assert any(
        "the variable ZONE of the zone of schedules, imported with its default 'UTC'" in line
        for line in texts(report)
    )


@pytest.mark.parametrize(
    ("first", "later", "zone"), [("UTC", "Asia/Tokyo", None), ("Asia/Tokyo", "UTC", "Asia/Tokyo")]
)
def test_zone_has_the_value_of_the_statement_before_it(
    tmp_path: Path, first: str, later: str, zone: str | None
) -> None:
    settings = (
        f"from celery.schedules import crontab\nTIME_ZONE = {first!r}\nCELERY_TIMEZONE = TIME_ZONE\nTIME_ZONE = {later!r}\n"
        "CELERY_BEAT_SCHEDULE = {'poll': {'task': 'depot.tasks.weigh', 'schedule': crontab(hour=3)}}\n"
    )
    start = (
        f"{APP}app.config_from_object('depot.settings', namespace='CELERY')\n@app.task\ndef weigh(): ...\n"
    )
    project, report = of_application(
        tmp_path, {"__init__.py": "", "settings.py": settings, "tasks.py": start}
    )
    assert project.schedules["poll"].get("enabled", True), texts(report)
    assert project.schedules["poll"].get("timezone") == zone
