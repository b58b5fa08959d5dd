"""A client of the broker that is given only a part of its address reaches the queues and results of Celery all the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock_import.celery import CeleryProject

TASK = "@app.task\ndef weigh(): ...\n"
HOST = "import os\nfrom celery import Celery\napp = Celery('yard', broker=f\"redis://{os.environ['YARD_HOST']}:6379/0\")\n"


def gaps(folder: Path, text: str) -> list[str]:
    (folder / "tasks.py").write_text(text)
    source = CeleryProject(folder / "tasks.py")
    source.mapped()
    return [f"{gap.line} {gap.what}" for gap in source.report.gaps]


@pytest.mark.parametrize(
    "host",
    ["os.environ['YARD_HOST']", "os.getenv('YARD_HOST')", "os.environ.get('YARD_HOST', 'localhost')"],
)
def test_client_with_the_host_of_the_broker_is_named(tmp_path: Path, host: str) -> None:
    lines = gaps(tmp_path, f"{HOST}{TASK}import redis\nclient = redis.Redis(host={host})\n")
    assert any(
        line.startswith("7 ") and "address of Celery's server, which redis.Redis" in line for line in lines
    ), lines


@pytest.mark.parametrize("name", ["HOST", "parts.hostname"])
def test_client_with_the_host_of_a_parsed_broker_is_named(tmp_path: Path, name: str) -> None:
    text = (
        "import os\nfrom urllib.parse import urlparse\nimport redis\nfrom celery import Celery\n"
        f"BROKER_URL = os.environ['YARD']\napp = Celery('yard', broker=BROKER_URL)\n{TASK}"
        f"parts = urlparse(BROKER_URL)\nHOST = parts.hostname\nclient = redis.Redis(host={name}, db=0)\n"
    )
    lines = gaps(tmp_path, text)
    assert any(
        line.startswith("11 ") and "address of Celery's server, which redis.Redis" in line for line in lines
    ), lines


@pytest.mark.parametrize(
    "call",
    [
        "client.zcard('unacked_index')", "client.hlen('unacked')", "client.execute_command('LLEN', 'celery')",
        "client.eval(\"return redis.call('llen', 'celery')\", 0)", "client.flushdb()", "client.smembers('_kombu.binding.celery')",
        "client.keys('celery-task-meta*')", "client.get(f'celery-task-meta-{id}')", "client.delete('celery-taskset-meta-1')",
    ],
)  # fmt: skip
def test_call_on_keys_of_celery_is_named(tmp_path: Path, call: str) -> None:
    lines = gaps(
        tmp_path, f"{HOST}{TASK}import redis\nclient = redis.Redis()\n\ndef look(id):\n    return {call}\n"
    )
    assert any(line.startswith("10 ") for line in lines), lines


def test_address_of_the_interface_of_rabbitmq_is_named(tmp_path: Path) -> None:
    text = (
        "import os, requests\nfrom celery import Celery\n"
        "app = Celery('yard', broker='amqp://' + os.environ['YARD_HOST'] + '//')\n"
        f"{TASK}def look():\n    return requests.get(f\"http://{{os.environ['YARD_HOST']}}:15672/api/queues/%2F/celery\")\n"
    )
    lines = gaps(tmp_path, text)
    assert any(line.startswith("7 ") and "interface of RabbitMQ" in line for line in lines), lines


def test_keys_of_other_data_are_not_named(tmp_path: Path) -> None:
    text = f"{HOST}{TASK}import redis\nclient = redis.Redis(host='cache')\n\ndef look():\n"
    text += "    return client.hget('crates', 'one')\n"
    lines = gaps(tmp_path, text)
    assert not any(line.startswith(("7 ", "10 ")) for line in lines), lines
