"""Objects of other frameworks that have a name of Celery's applications. Their members have no line."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.penstock_import.test_reviewed_changes import APP, of_application, texts

TASKS = f"{APP}@app.task\ndef weigh(): ...\n"


@pytest.mark.parametrize("framework", ["flask.Flask", "fastapi.FastAPI", "quart.Quart"])
@pytest.mark.parametrize("line", ["from depot import app", "from . import app"])
def test_application_of_another_framework_is_none_of_celery(
    tmp_path: Path, framework: str, line: str
) -> None:
    module, _, name = framework.rpartition(".")
    files = {
        "__init__.py": f"from {module} import {name}\napp = {name}(__name__)\n",
        "tasks.py": TASKS,
        "watch.py": f"{line}\n# celery\napp.logger.debug('x')\nfound = app.config.get('y')\nrule = found.get('z')\n",
    }
    _, report = of_application(tmp_path, files)
    assert not [text for text in texts(report) if text.startswith("watch.py")], texts(report)


def test_application_of_celery_in_a_package_stays(tmp_path: Path) -> None:
    files = {"__init__.py": APP, "watch.py": "from depot import app\n# celery\napp.control.purge()\n"}
    _, report = of_application(tmp_path, files)
    assert any("app.control.purge of the application" in text for text in texts(report)), texts(report)


def test_name_that_may_be_either_application_stays(tmp_path: Path) -> None:
    both = f"import os\nfrom flask import Flask\n{APP}if os.environ.get('WEB'):\n    app = Flask('depot')\n"
    files = {"__init__.py": both, "watch.py": "from depot import app\n# celery\napp.control.purge()\n"}
    _, report = of_application(tmp_path, files)
    assert any("app.control.purge of the application" in text for text in texts(report)), texts(report)
