"""A canvas or a signature that becomes a part of another canvas has no start of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock_import.celery import CeleryProject

APP = """from celery import Celery, chain, chord, group

app = Celery('yard')

@app.task
def pack(item): ...

@app.task
def clean(key): ...

"""


def imported(folder: Path, files: dict[str, str]) -> CeleryProject:
    """Return the mapped source of these files."""
    (folder / "src").mkdir()
    for name, text in files.items():
        (folder / "src" / name).write_text(text)
    source = CeleryProject(folder / "src")
    source.mapped()
    return source


HEADER = "def fulfil(items, key):\n    header = group([pack.si(item=i) for i in items])\n"


@pytest.mark.parametrize(
    "text",
    [
        f"{HEADER}    return chord(header=header, body=clean.si(key=key)).apply_async()\n",
        f"{HEADER}    return chord(header, clean.si(key=key)).apply_async()\n",
        f"{HEADER}    return chord(header)(clean.si(key=key))\n",
        f"{HEADER}    return (header | clean.si(key=key)).delay()\n",
        f"{HEADER}    return chain(header, clean.si(key=key)).delay()\n",
        f"{HEADER}    return chain(*[header, clean.si(key=key)]).delay()\n",
        f"{HEADER}    return chord(header.clone(), clean.si(key=key)).delay()\n",
        f"{HEADER}    return chord(header.set(queue='slow'), clean.si(key=key)).delay()\n",
        f"{HEADER}    parts = [header]\n    parts.append(clean.si(key=key))\n    return chain(*parts).delay()\n",
        f"{HEADER}    parts = []\n    parts.append(header)\n    return chain(parts).delay()\n",
        f"{HEADER}    other = header\n    return chord(other, clean.si(key=key)).delay()\n",
        f"{HEADER}    return header\n\ndef begin(items):\n    return chord(fulfil(items, 1), clean.si(key=1)).delay()\n",
        f"{HEADER}    begin(header)\n\ndef begin(first):\n    return chord(first, clean.si(key=1)).delay()\n",
        f"{HEADER}    pack.apply_async(args=(1,), link=header)\n",
        "def fulfil(key):\n    last = chain(pack.si(1), clean.si(2))\n    return chord([pack.si(3)], last).delay()\n",
        "def fulfil(key):\n    last = pack.si(1) | clean.si(2)\n    return group(last, last).delay()\n",
        "def fulfil(key):\n    if (last := chain(pack.si(1), clean.si(2))):\n        return group(last, pack.si(5)).delay()\n",
        "class Yard:\n    def __init__(self):\n        self.last = chain(pack.si(1), clean.si(2))\n\n"
        "    def begin(self):\n        return chord([pack.si(3)], self.last).delay()\n",
    ],
)
def test_part_of_another_canvas_has_no_start_of_its_own(tmp_path: Path, text: str) -> None:
    source = imported(tmp_path, {"depot.py": APP + text})
    parts = [gap for gap in source.report.gaps if gap.what.startswith(("the canvas group(", "the canvas chain(",
                                                                       "the canvas pack"))
             and ", a part of the canvas at line " in gap.what]  # fmt: skip
    assert len(parts) == 1, source.report.gaps
    assert "into the workflow of that canvas" in parts[0].by_hand
    assert "fulfil_flow" not in str([gap.what for gap in source.report.gaps if gap.line == parts[0].line])


@pytest.mark.parametrize(
    "text",
    [
        "def fulfil(key):\n    last = clean.si(key=key)\n    last.on_error(clean.si(key='x'))\n"
        "    return chord(group([pack.si(1), pack.si(2)]), last).delay()\n",
        "def last(key):\n    return clean.si(key=key)\n\n\ndef fulfil(key):\n    return chord([pack.si(1)], last(key)).delay()\n",
        "def fulfil(key):\n    last = clean.si(key=key).set(queue='slow')\n    return chain(pack.si(1), last).delay()\n",
    ],
)
def test_signature_in_a_name_belongs_to_its_canvas(tmp_path: Path, text: str) -> None:
    source = imported(tmp_path, {"depot.py": APP + text})
    gaps = [
        gap for gap in source.report.gaps if gap.what.partition(", a part")[0] == "the call clean.si(key=key)"
    ]
    assert [", a part of the canvas at line " in gap.what for gap in gaps] == [True], source.report.gaps


def test_part_in_another_file_names_the_file_of_its_canvas(tmp_path: Path) -> None:
    begin = "from celery import chord\nfrom depot import clean, fulfil\n\n\ndef begin(items):\n"
    begin += "    return chord(fulfil(items, 1), clean.si(key=1)).delay()\n"
    source = imported(tmp_path, {"depot.py": f"{APP}{HEADER}    return header\n", "begin.py": begin})
    assert any(", a part of the canvas at begin.py:6" in gap.what for gap in source.report.gaps)


@pytest.mark.parametrize(
    "text",
    [
        f"{HEADER}    return header.apply_async()\n",
        f"{HEADER}    return header\n\ndef begin(items):\n    return fulfil(items, 1).delay()\n",
        f"{HEADER}    header.delay()\n    print(header)\n",
    ],
)
def test_canvas_that_is_started_itself_is_a_workflow(tmp_path: Path, text: str) -> None:
    source = imported(tmp_path, {"depot.py": APP + text})
    assert source.report.mapped["canvases"] == 1, source.report.gaps
