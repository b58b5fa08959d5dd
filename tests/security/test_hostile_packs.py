"""Packs that somebody broke, at random: each is loaded or refused with its place, and nothing else happens. And what is
small to write and large to hold is refused within a bounded memory."""

from __future__ import annotations

import contextlib
import resource
import subprocess
import sys
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from penstock.errors import DefinitionError
from penstock.language.loading import load

PACK = """\
name: shop
version: "1.0"
triggers:
  placed:
    schema: {type: object, properties: {id: {type: integer}}}
actions:
  charge:
    command: [echo, "{{ order }}"]
    parameters: {order: {type: integer, required: true}, card: {type: string, secret: true}}
    retry: {max_attempts: 3, initial_delay: 1s}
    timeout: 30s
    route: gpu
rules:
  big:
    trigger: placed
    when: payload.id > 3 and payload.id in [4, 5]
    action: charge
    params: {order: "{{ payload.id | int }}"}
limits:
  few: {max: 3, scope: shop.charge, by: [order], rate: 100/min}
schedules:
  nightly: {action: charge, cron: 0 3 * * *, params: {order: 1}, timezone: Europe/Berlin}
routes:
  "*::shop::*": default
workflows:
  flow:
    parameters: {numbers: {type: array}}
    tasks:
      each: {action: shop.charge, with_items: "{{ parameters.numbers }}", input: {order: "{{ item }}"}}
      last: {action: shop.charge, needs: [each], when: "{{ 1 < 2 }}", input: {order: 2}}
    output: {n: "{{ tasks.last.result }}"}
"""
ODD = st.sampled_from(
    [
        *("null", "~", "[]", "{}", "-1", "1e999", "0x" + "f" * 400, "9" * 400, ".nan", ".inf", "true", "''", '"\\0"'),
        *("{{", "{{ 9 ** 9 ** 9 }}", "{% for x in range(10**9) %}", "{{ x" + ".y" * 400 + " }}", "../../etc/passwd"),
        *("*a", "&a [*a]", "!!python/object:os.system x", "<<: *a", "2026-13-45", "12:34:56", "1_000", "? [1]", "---"),
        *("[" * 300, "{a: " * 300, "'", '"', "#", "@", "`", "\t", "\u2028", "\ufeff", "é", "nan", "100/min", "0 0 31 2 *"),
    ]
)  # fmt: skip
LINES = PACK.splitlines()


@st.composite
def broken(draw: st.DrawFn) -> str:
    """The pack after a few edits: lines gone, doubled, moved, indented; words replaced by odd ones."""
    lines = list(LINES)
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, len(lines) - 1))
        what = draw(st.sampled_from(("gone", "twice", "moved", "indented", "value", "key", "text")))
        line = lines[at]
        key, colon, _ = line.partition(":")
        if what == "gone":
            lines = [*lines[:at], *lines[at + 1 :]] or [""]
        elif what == "twice":
            lines.insert(at, line)
        elif what == "moved":
            lines.insert(draw(st.integers(0, len(lines) - 1)), lines.pop(at))
        elif what == "indented":
            lines[at] = draw(st.sampled_from(("  ", "\t", "      "))) + line
        elif what == "value" and colon:
            lines[at] = f"{key}: {draw(ODD)}"
        elif what == "key" and colon:
            lines[at] = line.replace(key.strip(), draw(ODD), 1)
        else:
            lines[at] = line + draw(ODD | st.text(max_size=5))
    return "\n".join(lines)


def test_the_pack_itself_is_sound(tmp_path: Path) -> None:
    (tmp_path / "shop.yaml").write_text(PACK)
    assert set(load(tmp_path / "shop.yaml").actions) == {"shop.charge"}


@settings(max_examples=250, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(broken())
def test_a_broken_pack_is_loaded_or_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "shop.yaml"
    path.write_text(text, errors="replace")
    with contextlib.suppress(DefinitionError):
        load(path)


@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(st.binary(max_size=200))
def test_any_bytes_are_loaded_or_refused(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "shop.yaml"
    path.write_bytes(data)
    with contextlib.suppress(DefinitionError):
        load(path)


BOMBS = """
import resource, sys
from pathlib import Path
import orjson
from penstock.language.loading import load
from penstock.errors import PenstockError
from penstock.language.expressions import render
from penstock.messaging.envelope import decode
from penstock.language.schemas import Schema
from tests.penstock.language.expressions.test_budget import doubling
from tests.penstock.language.packs.test_wrong_packs import bomb

path = Path(sys.argv[1])


def yaml(text):
    path.write_text(text)
    load(path)


def many(count):
    return list(range(count))


WORK = {
    "a power": lambda: render("{{ 9 ** 9 ** 9 ** 9 ** 9 }}", {}),
    "a repeated text": lambda: render("{{ 'x' * 10 ** 10 }}", {}),
    "a doubled text": lambda: render(doubling("'x'", "a ~ a", "{{ a }}"), {}),
    "a doubled list": lambda: render(doubling("[1]", "[a, a]", "{{ a }}"), {}),
    "a loop in a loop": lambda: render(
        "{% for i in a %}{% for j in a %}{{ i }}{{ j }}{% endfor %}{% endfor %}", {"a": many(10**5)}),
    "a format": lambda: render("{{ '%1000000000d' % 1 }}", {}),
    "a format of digits": lambda: render("{{ '{:1000000000}'.format(1) }}", {}),
    "a million items": lambda: Schema({}).check(many(10**6), what="it", cap=256 * 1024),
    "deep JSON": lambda: Schema({}).check(orjson.loads(b"[" * 500 + b"]" * 500), what="it", cap=1_000),
    "a huge exponent": lambda: render("{{ '1e999999999' | int }}", {}),
    "an envelope of a million": lambda: decode(b'{"v": 1, "type": "x", "ids": [' + b'"x",' * 10**6 + b'"x"]}'),
    "aliases of aliases": lambda: yaml(bomb()),
    "deep YAML": lambda: yaml("[" * 10**5),
}
used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
for name, work in WORK.items():
    try:
        work()
        print(name, "ran", flush=True)
    except PenstockError as error:
        print(name, "refused", type(error).__name__, flush=True)
    grew = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - used) // 1024
    assert grew < 200, f"{name}: {grew} MB"
"""


def test_a_small_text_of_a_large_value_is_refused(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", BOMBS, str(tmp_path / "shop.yaml")],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        timeout=120,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (60, 60)),
    )
    assert done.returncode == 0, done.stdout + done.stderr[-2000:]
    ran = [line for line in done.stdout.splitlines() if line.endswith("ran")]
    assert not ran, ran
