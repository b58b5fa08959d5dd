from __future__ import annotations

import re
from collections.abc import Sequence

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from penstock.errors import DefinitionError
from penstock.language.terms.routing import Router, RoutingRule, refuse_unknown


def matches(pattern: str, namespace: str) -> bool:
    return Router([RoutingRule(pattern, "hit")], "miss").route(namespace) == "hit"


# --- what the patterns mean


@pytest.mark.parametrize(
    ("pattern", "namespace", "expected"),
    [
        ("public::shop::ship", "public::shop::ship", True),
        ("public::shop::ship", "public::shop::shipping", False),
        ("*::ml::*", "public::ml::train", True),
        ("*::ml::*", "tenant::ml::inference", True),
        ("*::ml::*", "public::etl::train", False),
        ("batch::**", "batch::jobs::daily", True),
        ("batch::**", "batch::jobs::hourly::cleanup", True),
        ("batch::**", "public::batch::jobs", False),
        ("batch::**", "batch", True),
        ("public::embedded::my_workflow::*", "public::embedded::my_workflow::load", True),
        ("public::embedded::my_workflow::*", "public::embedded::other::load", False),
        ("ml::train", "ml::train", True),
        ("ml::train", "public::ml::train", True),
        ("ml::train", "ml::retrain", False),
        ("ml::*", "public::pack::ml::predict", True),
        ("ml::*", "public::etl::extract", False),
        ("ml::*", "public::ml::wf::extract", False),
        ("**::batch::*", "public::batch::nightly", True),
        ("**::batch::*", "batch::nightly", True),
        ("**::batch::*", "public::batch::wf::nightly", False),
        ("**::heavy_*", "ml::heavy_train", True),
        ("**::heavy_*", "etl::data::heavy_load", True),
        ("**::heavy_*", "heavy_load", True),
        ("**::heavy_*", "etl::heavy_load::light", False),
        ("heavy_*", "public::ml::wf::heavy_compute", True),
        ("heavy_*", "public::ml::heavy_wf::compute", False),
        ("*_gpu", "public::ml::train_gpu", True),
        ("*_gpu", "public::ml::train_gpu2", False),
        ("a*b*c", "a1b2c", True),
        ("a*b*c", "abc", True),
        ("a*b*c", "acb", False),
        ("ab*ba", "aba", False),
        ("ab*ba", "abba", True),
        ("a*b*b", "ab", False),
        ("*a*a*", "xxxa", False),
        ("*a*a*", "xxaa", True),
        ("*", "public::anything::at::all", True),
        ("**", "public::anything::at::all", True),
        ("a::**::b", "a::b", True),
        ("a::**::b", "a::x::y::b", True),
        ("a::**::b", "a", False),
        ("a::**::m::**::b", "a::m::b", True),
        ("a::**::m::**::b", "a::x::m::y::b", True),
        ("a::**::m::**::b", "a::x::y::b", False),
        ("a::**::a", "a", False),
        ("a::b::c::d", "a::b::c", False),
        ("Ml::*", "public::ml::train", False),
    ],
)
def test_a_pattern_matches_as_documented(pattern: str, namespace: str, expected: bool) -> None:
    assert matches(pattern, namespace) is expected


def test_first_match_wins_and_the_default_takes_the_rest() -> None:
    router = Router(
        [
            RoutingRule("ml::*", "gpu"),
            RoutingRule("**::batch::*", "k8s"),
            RoutingRule("heavy_*", "high_memory"),
            RoutingRule("ml::heavy_*", "never"),
        ],
        "default",
    )
    assert router.route("public::ml::heavy_train") == "gpu"
    assert router.route("public::batch::heavy_load") == "k8s"
    assert router.route("public::etl::heavy_load") == "high_memory"
    assert router.route("public::etl::load") == "default"


def test_no_rules_means_the_default() -> None:
    assert Router([], "default").route("public::shop::ship") == "default"


def test_a_pattern_that_does_not_match_is_named_as_it_was_written() -> None:
    router = Router([RoutingRule("a*b::c", "r"), RoutingRule("**::x*::**", "r")], "default")
    [first, second] = router.explain("z::c").passed_over
    assert first.reason == "'a*b' does not match segment 1, 'z'"
    assert "'x*' does not occur" in second.reason


def test_a_pattern_may_be_as_long_as_the_bound() -> None:
    assert matches("a" * 512, "a" * 512)
    with pytest.raises(DefinitionError, match="longer than 512"):
        RoutingRule("a" * 513, "r")


# --- against a naive oracle


def oracle(pattern: str, namespace: str) -> bool:
    """The definition, word for word, with every way of placing a `**` tried."""
    p, n = pattern.split("::"), namespace.split("::")

    def one(glob: str, text: str) -> bool:
        return re.fullmatch(re.escape(glob).replace(r"\*", ".*"), text, re.DOTALL) is not None

    def all_of(p: Sequence[str], n: Sequence[str]) -> bool:
        if not p:
            return not n
        if p[0] == "**":
            return any(all_of(p[1:], n[i:]) for i in range(len(n) + 1))
        return bool(n) and one(p[0], n[0]) and all_of(p[1:], n[1:])

    if "**" not in p and len(p) < len(n):
        n = n[-len(p) :]
    return all_of(p, n)


names = st.text("ab", min_size=1, max_size=4)
globs = st.text("ab*", min_size=1, max_size=5).map(lambda s: re.sub(r"\*+", "*", s))
patterns = st.lists(globs | st.just("**"), min_size=1, max_size=5).map("::".join)
namespaces = st.lists(names, min_size=1, max_size=5).map("::".join)


@given(patterns, namespaces)
@example("**::**", "a")
@example("**::a::**::a::**", "a::b::a")
@example("ab*ba", "aba")
def test_it_agrees_with_the_naive_oracle(pattern: str, namespace: str) -> None:
    assert matches(pattern, namespace) is oracle(pattern, namespace)


@given(st.lists(patterns, max_size=4), namespaces)
def test_explain_gives_the_answer_of_route(patterns: list[str], namespace: str) -> None:
    router = Router([RoutingRule(p, f"r{n}") for n, p in enumerate(patterns)], "default")
    explanation = router.explain(namespace)
    assert explanation.route == router.route(namespace)
    assert len(explanation.passed_over) == next(
        (n for n, p in enumerate(patterns) if oracle(p, namespace)), len(patterns)
    )


# --- cost


class CountedText(str):
    """A string that counts the characters that comparing and searching it may touch."""

    steps = 0

    def split(self, sep: str | None = None, maxsplit: int = -1) -> list[str]:  # type: ignore[override]
        return [CountedText(part) for part in str.split(self, sep, maxsplit)]

    def startswith(self, prefix: str, *at: int) -> bool:  # type: ignore[override]
        CountedText.steps += len(prefix)
        return str.startswith(self, prefix, *at)

    def endswith(self, suffix: str, *at: int) -> bool:  # type: ignore[override]
        CountedText.steps += len(suffix)
        return str.endswith(self, suffix, *at)

    def find(self, piece: str, start: int = 0, end: int | None = None) -> int:  # type: ignore[override]
        found = str.find(self, piece, start, end)
        scanned = (found if found >= 0 else len(self) if end is None else end) - start
        CountedText.steps += (scanned + 1) * max(1, len(piece))
        return found

    def __eq__(self, other: object) -> bool:
        CountedText.steps += 1 + len(self)
        return str.__eq__(self, other)

    __hash__ = str.__hash__


@pytest.mark.parametrize("size", [10, 100, 400])
@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        (lambda n: "a*" * (n // 2) + "b", lambda n: "a" * n),
        (lambda n: "*" + "a*" * (n // 2) + "b", lambda n: "a" * n + "c"),
        (lambda n: "*" + "a" * (n // 2) + "b*", lambda n: "a" * n),
        (lambda n: "**::a::" * (n // 8) + "b", lambda n: "::".join("a" * n)),
        (lambda n: "**::*a*b::" * (n // 12) + "c", lambda n: "::".join(["aaa"] * n)),
        (lambda n: "**::" + "a::" * (n // 6) + "b::**", lambda n: "::".join("a" * n)),
    ],
)
def test_a_nasty_pattern_costs_at_most_pattern_times_text(pattern, text, size: int) -> None:  # type: ignore[no-untyped-def]
    glob, namespace = pattern(size), text(size)
    router = Router([RoutingRule(glob, "hit")], "miss")
    CountedText.steps = 0
    assert router.explain(CountedText(namespace)).route == "miss"
    assert 0 < CountedText.steps <= 2 * len(glob) * len(namespace)


# --- refusals


@pytest.mark.parametrize(
    ("pattern", "position", "reason"),
    [
        ("", 1, "a segment is empty"),
        ("::ml", 1, "a segment is empty"),
        ("ml::", 5, "a segment is empty"),
        ("ml::::x", 5, "a segment is empty"),
        ("ml:x", 3, "a single ':'"),
        ("ml:::x", 5, "a single ':'"),
        ("a::heavy**", 9, "glued"),
        ("***", 1, "glued"),
        ("a b", 2, "' ' is not allowed"),
        ("a::b?", 5, "'?' is not allowed"),
        ("a::[bc]", 4, "'[' is not allowed"),
        ("a\n", 2, "is not allowed"),
        ("a" * 600, 513, "longer than 512"),
    ],
)
def test_a_malformed_pattern_is_refused_with_its_position(pattern: str, position: int, reason: str) -> None:
    with pytest.raises(DefinitionError) as refused:
        RoutingRule(pattern, "gpu")
    assert f"at character {position}: " in refused.value.message
    assert reason in refused.value.message
    assert refused.value.hint


@pytest.mark.parametrize("route", ["", "a b", "gpu#", "*", ".x", "x" * 129, "größe"])
def test_a_malformed_route_is_refused(route: str) -> None:
    with pytest.raises(DefinitionError, match="is not a name"):
        RoutingRule("ml::*", route)
    with pytest.raises(DefinitionError, match="is not a name"):
        Router([], route)


def test_an_unknown_route_is_refused_with_a_suggestion() -> None:
    named = [("gpu", "route ml"), ("bacth", "action etl.load")]
    refuse_unknown(named, {"gpu", "bacth", "default"})
    with pytest.raises(DefinitionError) as refused:
        refuse_unknown(named, {"gpu", "batch", "default"})
    assert refused.value.message == "unknown route 'bacth' (action etl.load)"
    assert refused.value.hint == "Did you mean 'batch'? PENSTOCK_KNOWN_ROUTES names batch, default, gpu."


# --- explanations


def test_explain_says_which_rule_matched_and_why_earlier_ones_did_not() -> None:
    rules = [
        RoutingRule("public::a::b::c::d", "one"),
        RoutingRule("etl::*", "two"),
        RoutingRule("**::batch::**::x", "three"),
        RoutingRule("public::**::batch::**", "four"),
        RoutingRule("a::b::**::c::d", "five"),
        RoutingRule("ml::*", "gpu"),
        RoutingRule("**", "never"),
    ]
    explanation = Router(rules, "default").explain("public::ml::train")
    assert explanation.rule == rules[5]
    assert [passed.rule for passed in explanation.passed_over] == rules[:5]
    assert str(explanation).splitlines() == [
        "public::ml::train -> gpu (pattern 'ml::*' matches)",
        "  not 'public::a::b::c::d' -> one: it has 5 segments, but the namespace has only 3",
        "  not 'etl::*' -> two: 'etl' does not match segment 2, 'ml'",
        "  not '**::batch::**::x' -> three: 'x' does not match segment 3, 'train'",
        "  not 'public::**::batch::**' -> four: 'batch' does not occur between its neighbours",
        "  not 'a::b::**::c::d' -> five: it needs 4 segments, but the namespace has 3",
    ]


def test_explain_says_when_only_the_default_is_left() -> None:
    explanation = Router([RoutingRule("etl::*", "two")], "default").explain("public::ml::train")
    assert explanation.rule is None
    assert str(explanation).startswith("public::ml::train -> default (no rule matches: the default)")
