"""Criteria hold when StackStorm's hold. The oracle is written from the documentation and the source of its operators, by reading;
none of it is copied."""

from __future__ import annotations

import ast
import fnmatch
import os
import random
import re
from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest
from jinja2 import Environment, Template

from penstock.language.expressions import compile_template, condition
from penstock_import.stackstorm_rules import condition_of, criterion, parameters
from penstock_import.wanted_text import NotMapped
from tests.penstock_import.test_reviewed_changes import of_pack, texts

CASES = int(os.environ.get("PENSTOCK_TEST_IMPORT_CASES", "1000"))
"""The number of criteria that are compared."""
pytestmark = pytest.mark.timeout(600 + CASES)
OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "eq": lambda value, pattern: value == pattern,
    "neq": lambda value, pattern: value != pattern,
    "ieq": lambda value, pattern: value.lower() == pattern.lower(),
    "lt": lambda value, pattern: value < pattern,
    "gt": lambda value, pattern: value > pattern,
    "contains": lambda value, pattern: pattern in value,
    "ncontains": lambda value, pattern: pattern not in value,
    "icontains": lambda value, pattern: pattern.lower() in value.lower(),
    "incontains": lambda value, pattern: pattern.lower() not in value.lower(),
    "startswith": lambda value, pattern: value.startswith(pattern),
    "istartswith": lambda value, pattern: value.lower().startswith(pattern.lower()),
    "endswith": lambda value, pattern: value.endswith(pattern),
    "iendswith": lambda value, pattern: value.lower().endswith(pattern.lower()),
    "inside": lambda value, pattern: value in pattern,
    "nin": lambda value, pattern: value not in pattern,
    "matchwildcard": fnmatch.fnmatch,
    "matchregex": lambda value, pattern: re.compile(pattern, re.DOTALL).match(value) is not None,
    "regex": lambda value, pattern: re.search(pattern, value) is not None,
}
VALUES = [None, 0, 1, 5, 2.5, True, "", "a", "Bath", "null pointer", "x.y", ["a", "b"], {"a": 1}]
PATTERNS = [
    None,
    0,
    5,
    True,
    "",
    "a",
    "BATH",
    "null pointer",
    "ba*",
    "*th",
    "^Ba",
    "a|x",
    "x\\.y",
    "B+",
    ["a", 5],
]


def holds_there(kind: str, payload: dict[str, Any], pattern: Any) -> bool:
    """Return what StackStorm says: an operator that fails does not hold, nor does one without a pattern."""
    value = payload.get("v")
    if not payload:
        return False
    if pattern is None and kind != "neq":
        return False
    try:
        return bool(OPERATORS[kind](value, pattern))
    except Exception:
        return False


@lru_cache(maxsize=16)
def compiled(text: str) -> Callable[[dict[str, Any]], bool]:
    return condition(text)


def holds_here(text: str, payload: dict[str, Any]) -> bool:
    try:
        return compiled(text)({"payload": payload})
    except Exception:
        return False  # the rule does not match, and says why


@pytest.mark.parametrize("kind", OPERATORS)
def test_operator_holds_when_stackstorms_holds(kind: str) -> None:
    compared = 0
    for pattern in PATTERNS:
        try:
            text = condition_of([("trigger.v", {"type": kind, "pattern": pattern})])
        except NotMapped:
            continue
        payloads: list[dict[str, Any]] = [{}, {"w": 1}, *({"v": value} for value in VALUES)]
        for payload in payloads:
            assert holds_here(text, payload) == holds_there(kind, payload, pattern), (text, payload, pattern)
            compared += 1
    assert compared > 50


PIECES = ["a", "b", "ab", "\\.", "-", ".*", ".+", "(a|b)", "(?:ab|b?)", "[ab]", "a?", ".*?", "(^a|b$)", "|"]


def pattern_of(rng: random.Random) -> str:
    pieces = [rng.choice(PIECES) for _ in range(rng.randint(1, 5))]
    return rng.choice(["", "", "^"]) + "".join(pieces) + rng.choice(["", "", "$"])


@pytest.mark.parametrize("kind", ["regex", "matchregex"])
def test_regular_expression_holds_when_that_of_python_holds(kind: str) -> None:
    rng = random.Random(7)
    compared, refused, held = 0, 0, 0
    while compared < 1500:
        pattern = pattern_of(rng)
        try:
            text = criterion("trigger.v", {"type": kind, "pattern": pattern})
        except NotMapped:
            refused += 1
            continue
        compared += 1
        for _ in range(6):
            value = "".join(
                rng.choice("aab.-\n" if kind == "matchregex" else "aab.-") for _ in range(rng.randint(0, 7))
            )
            value += rng.choice(
                ["", "", "" if kind == "regex" and "." in pattern.replace("\\.", "") else "\n"]
            )
            holds = holds_there(kind, {"v": value}, pattern)
            held += holds
            assert holds_here(text, {"v": value}) == holds, (pattern, value, text)
    assert held > 1500
    assert refused < compared


CLASS_PIECES = [
    *("v", "a", "1", "\\.", "-", "_", ".*", ".+", "(a|b)", "$"),
    *("\\d", "\\d+", "\\d*", "\\d+?", "\\w", "\\w+", "\\w*", "[0-9]", "[0-9]+", "[0-9]*", "[a-c]+", "[0-9]?"),
    *(
        "(\\d+\\.)",
        "([0-9]+|a)",
        "(?!a|v[0-9]+)",
        "(?=\\d)",
        "(?!\\d+$)",
        "(?!.*1)",
        "[-.]",
        "[0-9]+\\.[0-9]+",
    ),
]
OF_TEXTS = "vaab11290..-_²٣½é"


@pytest.mark.parametrize("kind", ["regex", "matchregex"])
def test_class_and_look_ahead_hold_when_those_of_python_hold(kind: str) -> None:
    rng = random.Random(int(os.environ.get("PENSTOCK_TEST_IMPORT_SEED", "7")))
    compared, refused, held = 0, 0, 0
    while compared < CASES:
        pieces = [rng.choice(CLASS_PIECES) for _ in range(rng.randint(1, 4))]
        pattern = rng.choice(["", "^", "^", "^v"]) + "".join(pieces) + rng.choice(["", "", "$"])
        try:
            text = criterion("trigger.v", {"type": kind, "pattern": pattern})
        except NotMapped:
            refused += 1
            continue
        compared += 1
        for _ in range(12):
            value = rng.choice(["", "", "v", "v1"])
            value += "".join(rng.choice(OF_TEXTS) for _ in range(rng.randint(0, 5)))
            has_dots = kind == "regex" and "." in pattern.replace("\\.", "")
            value += rng.choice(["", "", "" if has_dots else "\n"])
            holds = holds_there(kind, {"v": value}, pattern)
            held += holds
            assert holds_here(text, {"v": value}) == holds, (pattern, value, text)
    assert held > compared
    assert refused < 3 * compared


@pytest.mark.parametrize(
    "pattern",
    ["v[0-9]+", "^.*v[0-9]+", "^[0-9]+5", "^\\d+\\w+", "^[0-9]+(?!a)", "^a(?!^b)", "^[^/]+$", "^\\d{2}"],
)
def test_class_whose_place_is_not_certain_is_refused(pattern: str) -> None:
    with pytest.raises(NotMapped, match="regular expression"):
        criterion("trigger.v", {"type": "regex", "pattern": pattern})


def test_dots_over_several_lines_fail_instead_of_matching() -> None:
    text = criterion("trigger.v", {"type": "regex", "pattern": "a.*b"})
    assert holds_here(text, {"v": "xaxb"})
    with pytest.raises(Exception, match="dots_over_several_lines"):
        condition(text)({"payload": {"v": "a\na b"}})


def test_text_within_a_pattern_stays_as_it_is() -> None:
    ours = criterion("trigger.message", {"type": "contains", "pattern": "null pointer of trigger"})
    assert '"null pointer of trigger"' in ours


def test_the_same_path_twice() -> None:
    text = condition_of(
        [("trigger.a#1", {"type": "gt", "pattern": 1}), ("trigger.a#2", {"type": "lt", "pattern": 5})]
    )
    assert [number for number in range(8) if holds_here(text, {"a": number})] == [2, 3, 4]


def test_existence_is_about_null() -> None:
    exists = condition_of([("trigger.a.b", {"type": "exists"})])
    absent = condition_of([("trigger.a.b", {"type": "nexists"})])
    payloads: list[dict[str, Any]] = [{"a": {"b": 0}}, {"a": {"b": None}}, {"a": {}}, {"c": 1}]
    assert [holds_here(exists, payload) for payload in payloads] == [True, False, False, False]
    assert [holds_here(absent, payload) for payload in payloads] == [False, True, True, True]
    assert not holds_here(absent, {})  # of an empty payload StackStorm asks nothing


@pytest.mark.parametrize(
    "spec",
    [
        {"type": "search", "pattern": {}, "condition": "any"},
        {"type": "timediff_lt", "pattern": 5},
        {"type": "regex", "pattern": "a.c"},
        {"type": "eq", "pattern": "{{ trigger.b }}"},
        {"type": "iregex", "pattern": "a.c"},
    ],
)
def test_operator_without_an_equal_is_refused(spec: dict[str, Any]) -> None:
    with pytest.raises(NotMapped):
        criterion("trigger.a", spec)


def test_parameters_have_the_type_of_the_action() -> None:
    assert parameters("{{ trigger.n }}", "string") == "{{ payload.n | string }}"
    assert parameters("{{ trigger.n }}") == "{{ payload.n }}"
    assert parameters("say 'trigger' to {{ trigger['trigger'] }}") == "say 'trigger' to {{ payload.trigger }}"


def cast_there(text: str, kind: str) -> Any:
    """Return what StackStorm makes of a rendered text. It raises ValueError or SyntaxError for what does not fit."""
    if kind == "integer":
        return int(text)
    if kind == "number":
        return float(text)
    if kind == "boolean":
        value = ast.literal_eval(text.capitalize())
        if value not in (True, False, None) or (isinstance(value, int) and not isinstance(value, bool)):
            raise ValueError(text)  # its schema refuses it
        return value
    return text


@pytest.mark.parametrize("kind", ["integer", "number", "boolean", "string"])
@pytest.mark.parametrize(
    "value",
    [
        None,
        "abc",
        "2.7",
        2.7,
        5,
        "5",
        -3,
        True,
        False,
        "yes",
        "no",
        "0",
        "1",
        "",
        "true",
        "FALSE",
        [1],
        {"a": 1},
    ],
)
def test_parameter_has_the_value_that_stackstorm_casts(value: Any, kind: str) -> None:
    theirs: Any = "fails"
    with suppress(ValueError, SyntaxError):
        theirs = cast_there(Template("{{ trigger.n }}").render(trigger={"n": value}), kind)
    ours: Any = "fails"
    with suppress(Exception):
        ours = compile_template(parameters("{{ trigger.n }}", kind))({"payload": {"n": value}})
    assert (ours, type(ours)) == (theirs, type(theirs))


def test_expression_within_a_mapping_or_a_list_gives_text() -> None:
    nested = {
        "body": {"count": "{{ trigger.n }}", "ids": ["{{ trigger.n }}", 5], "note": "n is {{ trigger.n }}"}
    }
    ours = compile_template(parameters(nested, "object"))
    assert ours({"payload": {"n": 7}}) == {"body": {"count": "7", "ids": ["7", 5], "note": "n is 7"}}


def test_block_of_jinja_gives_the_text_that_jinja_gives() -> None:
    text = "{% if trigger.ok %}all of {{ trigger.n }}{% elif trigger.n > 2 %}{{ trigger.n }}{% else %}{% endif %}"
    ours = compile_template(parameters(text, "string"))
    for payload in ({"ok": True, "n": 1}, {"ok": False, "n": 3}, {"ok": False, "n": 1}):
        assert ours({"payload": payload}) == Template(text).render(trigger=payload)


def test_random_criteria_are_all_of_them() -> None:
    rng = random.Random(1)
    for _ in range(60):
        criteria = [
            (
                f"trigger.{rng.choice('vw')}",
                {"type": rng.choice(["eq", "neq", "contains"]), "pattern": rng.choice(["a", 5])},
            )
            for _ in range(2)
        ]
        text = condition_of(criteria)
        payload = {name: rng.choice(VALUES) for name in "vw" if rng.random() < 0.8}
        expected = all(
            holds_there(str(spec["type"]), {"v": payload.get(path[-1])} if payload else {}, spec["pattern"])
            for path, spec in criteria
        )
        assert holds_here(text, payload) == expected, (criteria, payload)


@pytest.mark.parametrize(
    "text",
    [
        "{% set parts = trigger.ip.split('/') %}{{ parts[0] }}",
        "{%- set masks = {24: 'a', 32: 'b'} %}\n{{ masks[trigger.ip.split('/')[1] | int] }}",
        "a\n  {% if trigger.n > 1 %}\n  many\n  {% else %}\n  few\n  {% endif %}\nz\n",
        "{% for word in trigger.words %}\n{{ word }};\n{% else %}none{% endfor %}",
        "{% for word in trigger.words %}{% set n = word.title %}{{ n }}{% endfor %}",
        "{{ trigger.ip | truncate(6, False, '') }}|{{ trigger.ip | truncate(6) }}|{{ trigger.ip | truncate(4, true, '!', 0) }}",
        "{% set n = 5 %}{% if trigger.n > 1 %}{% set n = 6 %}{% endif %}{{ n }}",
    ],
)
@pytest.mark.parametrize("n", [1, 2])
def test_blocks_give_the_text_that_stackstorms_jinja_gives(text: str, n: int) -> None:
    words = [{"title": "a"}, {"title": "b"}][: n - 1]
    payload = {"ip": "10.0.0.1/24", "n": n, "words": words}
    theirs = Environment(trim_blocks=True, lstrip_blocks=True).from_string(text).render(trigger=payload)
    ours = parameters(text, "string")
    assert compile_template(ours)({"payload": payload}) == theirs


def test_loop_that_sets_two_names_is_refused() -> None:
    with pytest.raises(NotMapped):
        parameters("{% for a, b in trigger.items() %}{{ a }}{% endfor %}", "string")


def test_member_of_payload_may_be_named_as_a_method_of_texts() -> None:
    rendered = compile_template(parameters("{{ trigger.title }}", "string"))
    assert rendered({"payload": {"title": "a pen"}}) == "a pen"
    with pytest.raises(NotMapped):
        parameters("{{ trigger.items }}", "string")


@pytest.mark.parametrize(
    ("text", "kind", "value"),
    [
        ("4", "integer", 4),
        (" 4 ", "integer", 4),
        ("4", ["integer", "null"], 4),
        ("4.5", "number", 4.5),
        ("true", "boolean", True),
        ("False", "boolean", False),
        ('["a", 1]', "array", ["a", 1]),
        ("['a', (1)]", "array", ["a", 1]),
        ('{"a": null}', "object", {"a": None}),
        ("4", "string", "4"),
        ("4", None, "4"),
        ("4", ["integer", "string"], "4"),
        ("4.5", "integer", None),
        ("x", "integer", None),
        ("nan", "number", None),
        ("yes", "boolean", None),
        ("1", "boolean", None),
        ("{}", "array", None),
        ("x", "object", None),
    ],
)
def test_text_of_a_parameter_has_its_type(text: str, kind: Any, value: Any) -> None:
    """StackStorm converts a text to the type of the parameter, and refuses a start whose text it cannot convert."""
    if value is None:
        with pytest.raises(NotMapped, match="does not convert"):
            parameters(text, kind)
    else:
        ours = parameters(text, kind)
        assert (type(ours), ours) == (type(value), value)


@pytest.mark.parametrize(
    "value",
    [
        "a {{ trigger.x }} {# note #} b",
        {"a": ["b {# note #}", "{{ trigger.x }}"]},
        {"a": {"b {# note #}": "{{ trigger.x }}"}},
        "a {{- trigger.x }} b",
        "a {{ trigger.x -}} b",
    ],
)
def test_text_that_jinja_shortens_is_not_mapped(value: Any) -> None:
    """StackStorm drops comments, and the spaces beside `{{-`."""
    with pytest.raises(NotMapped, match=r"StackStorm drops|removes the spaces"):
        parameters(value, "object" if isinstance(value, dict) else "string")


@pytest.mark.parametrize(
    "value", ["a {# note #} b", "x=abc; echo ${#x}", {"a": ["b {# note #}"]}, {"a": {"b {# note #}": 1}}]
)
def test_comment_of_a_value_without_expressions_stays(value: Any) -> None:
    """StackStorm renders no value without `{{` and `{%`."""
    ours = parameters(value, "object" if isinstance(value, dict) else "string")
    assert compile_template(ours)({"payload": {}}) == value


@pytest.mark.parametrize(
    ("text", "value"),
    [("{{- trigger.x }}", 5), ("{{+ trigger.x }}", 5), ("{{ trigger.x -}}", 5), ("{{ -trigger.x }}", -5)],
)
def test_mark_of_spaces_is_no_sign(text: str, value: int) -> None:
    assert Environment().from_string(text).render(trigger={"x": 5}) == str(value)
    assert compile_template(parameters(text, "integer"))({"payload": {"x": 5}}) == value


@pytest.mark.parametrize("text", ["a\n", "a\r\nb\n\n", "\n"])
def test_text_without_an_expression_keeps_its_line_breaks(text: str) -> None:
    """StackStorm renders only texts with `{{` or `{%` in them."""
    assert parameters(text, "string") == text
    rendered = compile_template(parameters(text + "{{ trigger.x }}\n", "string"))({"payload": {"x": "b"}})
    assert rendered == Template(text + "{{ trigger.x }}\n").render(trigger={"x": "b"})


def test_bare_name_within_a_mapping_keeps_its_type() -> None:
    """StackStorm writes `| to_complex` into a `{{name}}` that is all of a text, and has no space and no dot."""
    value = {"whole": "{{trigger}}", "text": "{{ trigger.x }}", "list": ["{{trigger}}", "{{trigger.x}}"]}
    rendered = compile_template(parameters(value, "object"))({"payload": {"x": 1}})
    assert rendered == {"whole": {"x": 1}, "text": "1", "list": [{"x": 1}, "1"]}


@pytest.mark.parametrize("pattern", ["[0-9a-f]+", "[a-f]*", "{.*}", "a|{b}", "([0-9a-l]+)"])
def test_class_alone_and_braces_hold_anywhere(pattern: str) -> None:
    text = criterion("trigger.v", {"type": "regex", "pattern": pattern})
    for value in ("", "x", "xyz", "xay", "9", "}{", "{}", "{b}", "x{y}z", "x}y{z"):
        assert holds_here(text, {"v": value}) == holds_there("regex", {"v": value}, pattern), (value, text)


TO_LIST = {"name": "list", "runner_type": "local-shell-cmd", "parameters": {"cmd": {"type": "string"}}}


@pytest.mark.parametrize("trigger", ["depot.arrived", "core.st2.IntervalTimer"])
@pytest.mark.parametrize(
    ("text", "secret"),
    [("{{ st2kv.system.folder }}", "folder"), ("{{ config_context.a.b }}", "config_context_a_b")],
)
def test_key_of_store_and_of_configuration_is_a_secret(
    tmp_path: Path, trigger: str, text: str, secret: str
) -> None:
    """StackStorm renders them in rules with a timer, too. The configuration is that of the action's pack."""
    timer = {"parameters": {"unit": "hours", "delta": 4}} if trigger.endswith("Timer") else {}
    rule = {"name": "r", "enabled": True, "trigger": {"type": trigger, **timer}}
    files = {
        "actions/list.yaml": TO_LIST,
        "triggers/arrived.yaml": {"name": "arrived"},
        "rules/r.yaml": rule | {"action": {"ref": "depot.list", "parameters": {"cmd": text}}},
        "rules/s.yaml": rule
        | {"name": "s", "action": {"ref": "other.list", "parameters": {"cmd": "{{ config_context.a.b }}"}}},
    }
    project, report = of_pack(tmp_path, files)
    made = {**project.rules, **project.schedules}
    assert made["r"]["params"] == {"cmd": f"{{{{ secrets.{secret} }}}}"}
    assert made["r"].get("enabled", True)
    assert made["s"]["enabled"] is False
    assert any(
        "rules/s.yaml" in line and "`config_context` has no equivalent in Penstock" in line
        for line in texts(report)
    )


def test_payload_of_a_timer_is_not_mapped(tmp_path: Path) -> None:
    timer = {"type": "core.st2.IntervalTimer", "parameters": {"unit": "hours", "delta": 4}}
    parameters_there = {"cmd": "{{ trigger.executed_at }}"}
    files = {
        "actions/list.yaml": TO_LIST,
        "rules/r.yaml": {
            "name": "r",
            "enabled": True,
            "trigger": timer,
            "action": {"ref": "depot.list", "parameters": parameters_there},
        },
    }
    project, report = of_pack(tmp_path, files)
    assert project.schedules["r"]["enabled"] is False
    assert any("a timer has no payload" in line for line in texts(report))


@pytest.mark.parametrize("kind", sorted(OPERATORS))
def test_criterion_on_the_whole_payload_holds_when_stackstorms_holds(kind: str) -> None:
    """StackStorm evaluates no criterion for an empty payload."""
    for payload in ({}, {"a": 1}, {"b": None}):
        for pattern in (None, "a", {"a": 1}, {}, 5):
            try:
                text = condition_of([("trigger#x", {"type": kind, "pattern": pattern})])
            except NotMapped:
                continue
            expected = False
            with suppress(Exception):
                expected = bool(payload) and stackstorm_holds(kind, payload, pattern)
            ours = False
            with suppress(Exception):
                ours = condition(text)({"payload": payload})
            assert ours is expected, (text, payload)


def stackstorm_holds(kind: str, value: Any, pattern: Any) -> bool:
    """Return whether an operator holds. All but `neq` return False for a pattern of null."""
    if pattern is None:
        return kind == "neq" and value is not None
    return bool(OPERATORS[kind](value, pattern))


def test_existence_of_the_event_is_that_of_its_payload() -> None:
    exists, absent = {"type": "exists", "pattern": "path"}, {"type": "nexists"}
    assert condition(condition_of([("trigger", exists)]))({"payload": {"a": 1}}) is True
    assert condition(condition_of([("trigger", exists)]))({"payload": {}}) is False
    assert condition(condition_of([("trigger", absent)]))({"payload": {"a": 1}}) is False
    for body in ({}, {"a": 1}):  # of a webhook, the event has headers besides
        assert condition(condition_of([("trigger", exists)], "trigger.body"))({"payload": body}) is True
    with pytest.raises(NotMapped, match="the whole event"):
        condition_of([("trigger", {"type": "eq", "pattern": {}})], "trigger.body")


@pytest.mark.parametrize("kind", sorted(OPERATORS))
def test_path_beside_the_event_has_no_value(kind: str) -> None:
    """StackStorm's context has the event alone, so that such a path is null."""
    for pattern in ("a", "(.*)_check_(.*)", 5):
        try:
            text = condition_of([("service.name", {"type": kind, "pattern": pattern})])
        except NotMapped:
            continue
        expected = False
        with suppress(Exception):
            expected = bool(OPERATORS[kind](None, pattern))
        ours = False
        with suppress(Exception):
            ours = condition(text)({"payload": {"service": {"name": "a"}}})
        assert ours is expected, text


@pytest.mark.parametrize("path", ["system.key", "st2kv.system.key", "service[0]", "service.*", "parent"])
def test_path_beside_the_event_that_may_have_a_value_is_refused(path: str) -> None:
    with pytest.raises(NotMapped, match="neither names nor numbers"):
        condition_of([(path, {"type": "exists"})])


def test_path_beside_the_event_is_named(tmp_path: Path) -> None:
    rule = {
        "name": "go",
        "enabled": True,
        "trigger": {"type": "other.came"},
        "criteria": {"service": {"type": "neq", "pattern": "a"}},
        "action": {"ref": "core.noop"},
    }
    project, report = of_pack(tmp_path, {"rules/go.yaml": rule})
    assert report.mapped["rules"] == 1
    assert project.rules["go"]["when"] == '(payload | length > 0) and (none != "a")'
    assert any("the criterion service, which reads nothing" in text for text in texts(report))
