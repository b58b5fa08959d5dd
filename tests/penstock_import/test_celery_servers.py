"""Code that reaches the server of Celery's messages by itself. Each such place has a line."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.penstock_import.test_reviewed_changes import APP, named, of_application, texts

BROKER = "redis://localhost:6379/0"
TASKS = "@app.task(queue='video')\ndef weigh(): ...\n"


def lines_of(folder: Path, look: str, settings: str, tasks: str = "") -> list[str]:
    """Return the lines about the module `look.py`, in an application that `settings.py` gives its broker."""
    given = (
        tasks
        or f"from depot import settings\n{APP}app = Celery('depot', broker=settings.CELERY_BROKER_URL)\n{TASKS}"
    )
    files = {"__init__.py": "", "settings.py": settings, "tasks.py": given, "look.py": look}
    _, report = of_application(folder, files)
    return [line for line in texts(report) if line.startswith("look.py")]


@pytest.mark.parametrize(
    ("settings", "call"),
    [
        (f"REDIS_URL = '{BROKER}'\nCELERY_BROKER_URL = REDIS_URL\n", "redis.from_url(settings.REDIS_URL)"),
        (f"CELERY_BROKER_URL = '{BROKER}'\nCACHE = 'redis://127.0.0.1'\n", "redis.from_url(settings.CACHE)"),
        (f"CELERY_BROKER_URL = '{BROKER}'\n", "redis.Redis()"),
        (f"CELERY_BROKER_URL = '{BROKER}'\n", "redis.Redis('localhost', 6379)"),
        (f"CELERY_BROKER_URL = '{BROKER}'\n", "redis.from_url('redis://:secret@localhost:6379/0')"),
        (
            "import os\nCELERY_BROKER_URL = os.environ['REDIS_URL']\nCACHE = os.environ['REDIS_URL']\n",
            "redis.from_url(settings.CACHE)",
        ),
        (
            "import os\nCELERY_BROKER_URL = os.getenv('QUEUES', os.getenv('REDIS_URL'))\n",
            "redis.from_url(os.environ['REDIS_URL'])",
        ),
        (
            f"import os\nCELERY_BROKER_URL = os.getenv('A', '{BROKER}')\nB = os.getenv('B', '{BROKER}')\n",
            "redis.from_url(settings.B)",
        ),
        (
            "import os\nH = os.environ['H']\nCELERY_BROKER_URL = f'redis://{H}:6379/0'\nB = f'redis://{H}:6379/0'\n",
            "redis.from_url(settings.B)",
        ),
        (
            "import os\nREDIS_HOST = os.environ['R']\nCELERY_BROKER_URL = 'redis://%s:6379/0' % REDIS_HOST\n",
            "redis.Redis(host=settings.REDIS_HOST)",
        ),
        (
            "import os\nREDIS_URL = os.environ['R']\nCELERY_BROKER_URL = REDIS_URL or ''\n",
            "(lambda url: redis.Redis.from_url(url))(url=settings.REDIS_URL)",
        ),
    ],
)
def test_client_with_the_address_of_the_broker_by_another_name_is_named(
    tmp_path: Path, settings: str, call: str
) -> None:
    look = f"import os\nimport redis\nfrom depot import settings\nclient = {call}\nclient.ping()\n"
    lines = lines_of(tmp_path, look, settings)
    assert any(line.startswith("look.py:4") and "of Celery's server" in line for line in lines), lines
    assert not any("secret" in line for line in lines)


@pytest.mark.parametrize(
    "look",
    [
        "import redis\nclient = redis.from_url('redis://cache:6379/0')\n",
        "import redis\nclient = redis.from_url('redis://localhost:6379/3')\n",
        "import redis\nclient = redis.Redis(db=2)\nclient.llen('letters')\n",
        "from sqlalchemy import create_engine\nfrom depot import settings\nengine = create_engine(settings.DATABASE_URL)\n",
        "carts = {}\ncarts.keys()\ncarts.copy('video')\n",
    ],
)
def test_client_of_another_server_has_no_line(tmp_path: Path, look: str) -> None:
    settings = (
        f"import os\nCELERY_BROKER_URL = '{BROKER}'\nDATABASE_URL = os.environ['D']\n"
        "CELERY_RESULT_BACKEND = f'db+{DATABASE_URL}'\n"
    )
    assert lines_of(tmp_path, look, settings) == []


@pytest.mark.parametrize(
    "call",
    [
        "client.llen('video')",
        "client.llen('celery')",
        "client.delete('video')",
        "client.lrange(name='video', start=0, end=-1)",
        "channel.queue_declare(queue='video', passive=True)",
        "[client.llen(queue) for queue in ('letters', 'video')]",
        "[client.llen(queue) for queue in QUEUES]",
        "client.llen(f'video\\x06\\x163')",
        "depth('video')",
        "[depth(each) for each in QUEUES]",
        "client.smembers('_kombu.binding.video') or client.delete('_kombu.binding.video')",
    ],
)
def test_call_on_a_queue_of_the_application_is_named(tmp_path: Path, call: str) -> None:
    look = (
        "import redis\nQUEUES = ['letters', 'video']\nclient = redis.from_url('redis://elsewhere')\n"
        f"def depth(queue):\n    return client.llen(queue)\ndepths = {call}\n"
    )
    lines = lines_of(tmp_path, look, "", f"{APP}{TASKS}")
    assert any("which may read or change a queue of Celery" in line for line in lines), lines


def test_call_on_a_list_of_another_name_has_no_line(tmp_path: Path) -> None:
    look = "import redis\nclient = redis.from_url('redis://elsewhere')\nclient.llen('letters')\nclient.delete('x')\n"
    assert lines_of(tmp_path, look, "", f"{APP}{TASKS}") == []


def test_names_that_hold_each_other_are_followed_once(tmp_path: Path) -> None:
    names = [f"n{number}" for number in range(60)]
    values = "".join(f"{name} = [{', '.join(names)}]\n" for name in names)
    look = f"import redis\nclient = redis.from_url('redis://elsewhere')\n{values}client.llen(n0)\n"
    assert lines_of(tmp_path, look, "", f"{APP}{TASKS}") == []


def test_default_broker_is_known(tmp_path: Path) -> None:
    look = "import pika\npika.BlockingConnection(pika.ConnectionParameters('localhost'))\n"
    lines = lines_of(tmp_path, look, "", f"{APP}{TASKS}")
    assert any(
        "look.py:2 the client pika.ConnectionParameters of Celery's server" in line for line in lines
    ), lines


def test_line_of_a_server_names_the_work(tmp_path: Path) -> None:
    files = {"tasks.py": f"{APP}{TASKS}", "look.py": "client.llen('celery')\n", "__init__.py": ""}
    _, report = of_application(tmp_path, files)
    assert named(
        report,
        "look.py:1 client.llen('celery'), which may read or change a queue of Celery: 'celery' | In Penstock the messages",
    )
