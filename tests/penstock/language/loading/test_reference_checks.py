from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import pytest

from penstock.errors import DefinitionError
from penstock.language.definitions import (
    Document,
    Limit,
    Pack,
    Route,
    Rule,
    Schedule,
    Trigger,
    action,
    http_action,
)
from penstock.language.loading import Definitions, load
from penstock.language.schemas import Secret
from penstock.language.workflows import from_yaml

pack = Pack("shop")
placed = Trigger("placed")


@action(on_failure="notify")
def charge(customer: str, amount: int = 1, card: Annotated[str, Secret] = "") -> None: ...


@action
def notify(**anything) -> None: ...  # type: ignore[no-untyped-def]


def problems(*items: object, **known: dict[str, dict[str, Any] | None]) -> str:
    with pytest.raises(DefinitionError) as raised:
        Definitions(items).check(known)
    return f"{raised.value.message}\n{raised.value.hint}"


def requesting(url: str = "https://example.org/", **request: Any) -> Any:
    return http_action(
        "shop.get",
        url=url,
        parameters={"id": "integer"},
        options={"secrets": {"there": "T"}, "request": {"method": "GET"} | request},
        pack="shop",
    )


@pytest.mark.parametrize(
    ("request_", "fault"),
    [
        ({"url": "https://example.org/{{ parameter.id }}"}, "`parameter` is not defined here"),
        ({"headers": {"a": "{{ parameters.idd }}"}}, "there is no `idd` in `parameters`"),
        ({"query": {"a": "{{ secrets.tok }}"}}, "Declare it: secrets="),
        ({"method": "PUT", "body": {"a": "{{ response.body }}"}}, "`response` is not defined here"),
        ({"result": "{{ response.bdy }}"}, "there is no `bdy` in `response`"),
        ({"result": "{{ items }}"}, "`items` is not defined here"),
    ],
)
def test_names_that_a_request_will_not_have_are_faults(request_: dict[str, Any], fault: str) -> None:
    assert fault in problems(requesting(**request_))


def test_names_that_a_request_has_are_sound() -> None:
    sound = requesting(
        "https://example.org/{{ parameters.id }}",
        headers={"a": "{{ secrets.there }} {{ execution.attempt }} {{ context.schedule }}"},
        pages={"items": "{{ response.body.x }}", "next": "{{ response.links.next }}"},
        result="{{ items + response.body }}",
    )
    Definitions([sound]).check()


def test_unknown_refs_may_be_accepted_and_other_faults_are_not() -> None:
    unknown = Rule("big", trigger=placed, action="elsewhere")
    Definitions([placed, unknown]).check(accept_unknown=True)
    wrong = Rule("small", trigger=placed, action=charge, params={"custmer": 1})
    with pytest.raises(DefinitionError, match="custmer"):
        Definitions([placed, charge, notify, unknown, wrong]).check(accept_unknown=True)


def test_a_set_that_refers_only_to_itself_is_sound() -> None:
    rule = Rule("big", trigger=placed, action=charge, params={"customer": "{{ payload.id }}", "amount": 3})
    Definitions([placed, charge, notify, rule, Schedule("daily", action=notify, cron="@daily")]).check()


def test_definitions_known_elsewhere_may_be_referred_to() -> None:
    rule = Rule("big", trigger="other.event", action="other.work", params={"anything": 1})
    flow = Schedule("daily", action="other.flow", cron="@daily")
    Definitions([rule, flow]).check(
        {"trigger": {"other.event": None}, "action": {"other.work": {}}, "workflow": {"other.flow": None}}
    )


def test_unknown_triggers_and_actions_are_named_with_their_lines() -> None:
    rule = Rule("big", trigger="plcaed", action="chrage")
    said = problems(placed, charge, notify, rule)
    assert "test_reference_checks.py:" in said
    assert "rule shop.big: unknown trigger 'shop.plcaed'" in said
    assert "rule shop.big: unknown action 'shop.chrage'" in said
    assert "Did you mean 'shop.placed'?" in said
    assert "unknown action 'shop.nowhere'" in problems(Schedule("s", action="nowhere", every=5))
    assert "on_failure: unknown action 'shop.notify'" in problems(charge)


def test_parameters_of_rules_and_schedules_are_held_against_those_of_the_action() -> None:
    known = [placed, charge, notify]
    said = problems(*known, Rule("big", trigger=placed, action=charge, params={"custmer": "x"}))
    assert "`shop.charge` has no parameter `custmer`" in said
    assert "`shop.charge` needs the parameter `customer`" in said
    assert "Did you mean 'customer'?" in said
    late = Schedule("s", action=charge, every=5, params={"customer": "c", "amount": "many"})
    assert "amount: expected integer, got string" in problems(*known, late)


def test_title_that_reads_no_parameter_is_refused() -> None:
    @action(title="x {{ parameters.nn }}")
    def titled(n: int) -> None: ...

    flow = from_yaml(
        "workflow: a.flow\nparameters: {n: integer}\ntitle: 'x {{ parameters.m }}'\n"
        "tasks:\n  one: {action: shop.charge, input: {customer: a}}\n"
    )
    assert "titled: there is no `nn` in `parameters`\nDid you mean 'n'?" in problems(titled)
    assert "there is no `m` in `parameters`" in problems(charge, notify, flow)


@pytest.mark.parametrize(
    ("scope", "problem"),
    [
        ("shop.chrage", "there is no action 'shop.chrage'\nDid you mean 'shop.charge'?"),
        ("shpo", "there is no pack 'shpo'\nDid you mean 'shop'?"),
    ],
)
def test_limit_that_covers_nothing_is_refused(scope: str, problem: str) -> None:
    limit = Limit(3, ref="shop.some", scope=scope)
    assert problem in problems(charge, notify, limit)
    Definitions([charge, notify, limit]).check(accept_unknown=True)
    Definitions([limit]).check({"action": {scope if "." in scope else f"{scope}.one": None}})


@pytest.mark.parametrize("field", ["by", "fair"])
def test_misspelt_label_of_a_limit_is_refused_with_the_label(field: str) -> None:
    def limit_of(path: str, scope: str = "shop.charge") -> Limit:
        return Limit(3, ref="shop.some", scope=scope, **{field: path})  # type: ignore[arg-type]

    for path, meant in (("label.team", "labels.team"), ("lables.a.b", "labels.a.b")):
        problem = f"there is no `{path.partition('.')[0]}` in `parameters`\nDid you mean '{meant}'?"
        assert problem in problems(charge, notify, limit_of(path))
    assert "`card` is a secret" in problems(charge, notify, limit_of("card", "shop"))
    for path in ("labels.team", "labels.card", "customer"):
        Definitions([charge, notify, limit_of(path)]).check()


def test_template_of_another_type_is_refused() -> None:
    """A template that is a single name hands its value on as it is, so its type is known before a run."""
    counted = Trigger(
        "counted", schema={"properties": {"n": {"type": "integer"}, "text": {"type": "string"}}}
    )
    for name in ("payload", "event.payload"):
        rule = Rule("r", trigger=counted, action=charge, params={"customer": f"{{{{ {name}.n }}}}"})
        assert f"customer: expected string, and `{name}.n` is integer" in problems(
            charge, notify, counted, rule
        )
    fits = {"customer": "{{ payload.n | string }}", "amount": "{{ payload.n }}"}
    Definitions([charge, notify, counted, Rule("r", trigger=counted, action=charge, params=fits)]).check()
    text = "workflow: a.flow\nparameters: {n: TYPE}\ntasks:\n"
    text += "  one: {action: shop.charge, input: {customer: a, amount: '{{ parameters.n }}'}}\n"
    assert "amount: expected integer, and `parameters.n` is string" in problems(
        charge, notify, from_yaml(text.replace("TYPE", "string"))
    )
    Definitions([charge, notify, from_yaml(text.replace("TYPE", "number"))]).check()


@pytest.mark.parametrize(
    ("template", "json_type"),
    [
        ("EUR {{ payload.n }}", "string"),
        ("{{ payload.n }} ", "string"),
        ("{{ payload.n }}{{ payload.n }}", "string"),
        ("{% if payload.n %}7{% endif %}", "string"),
        ("{{ payload.n ~ 0 }}", "string"),
        ("{{ {'n': payload.n} }}", "object"),
        ("{{ [payload.n] }}", "array"),
        ("{{ payload.n > 1 }}", "boolean"),
        ("{{ payload.n is defined }}", "boolean"),
    ],
)
def test_template_that_always_makes_another_type_is_refused(template: str, json_type: str) -> None:
    counted = Trigger("counted", schema={"properties": {"n": {}, "text": {"type": "string"}}})
    rule = Rule("r", trigger=counted, action=charge, params={"customer": "a", "amount": template})
    assert f"amount: expected integer, and `{template}` is always {json_type}" in problems(
        charge, notify, counted, rule
    )
    flow = from_yaml(
        "workflow: a.flow\nparameters: {n: {}}\ntasks:\n  one:\n    action: shop.charge\n    input: "
        + f'{{customer: a, amount: "{template.replace("payload", "parameters")}"}}\n'
    )
    assert f"is always {json_type}" in problems(charge, notify, flow)


@pytest.mark.parametrize(
    "template", ["{{ payload.n }}", "{{ payload.n or 7 }}", "{{ payload.n }}\n", "{{ payload.n + 1 }}"]
)
def test_template_that_can_make_the_type_is_accepted(template: str) -> None:
    counted = Trigger("counted", schema={"properties": {"n": {}}})
    params = {"customer": "{{ payload.n }} EUR", "amount": template}
    Definitions([charge, notify, counted, Rule("r", trigger=counted, action=charge, params=params)]).check()


CLOSED = {"properties": {"n": {"type": "integer"}}, "required": ["n"], "additionalProperties": False}


@pytest.mark.parametrize("known", [{"workflow": {"other.work": CLOSED}}, {"action": {"other.work": CLOSED}}])
def test_parameters_of_known_definitions_are_checked_everywhere(
    known: dict[str, dict[str, Any]], tmp_path: Path
) -> None:
    [kind] = known
    file = tmp_path / "flow.yaml"
    file.write_text(f"workflow: a.flow\ntasks:\n  one: {{{kind}: other.work, input: {{m: 1, n: x}}}}\n")
    wrong = {"action": "other.work", "params": {"m": 1, "n": "x"}}
    for one in (Rule("r", trigger="other.event", **wrong), Schedule("s", every=5, **wrong), *load(file)):  # type: ignore[arg-type]
        said = problems(one, trigger={"other.event": None}, **known)
        assert "`other.work` has no parameter `m`" in said
        assert "n: expected integer, got string" in said


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"every": 5, "params": {"customer": "{{ nothere.x }}"}}, "`nothere` is not defined here"),
        ({"every": 5, "params": {"customer": "{{ context.shop }}"}}, "there is no `shop` in `context`"),
        ({"trigger": "placed", "when": "nothere.x"}, "`nothere` is not defined here"),
        ({"trigger": "placed", "params": {"customer": "{{ event.at }}"}}, "there is no `at` in `event`"),
        ({"trigger": "sent", "when": "payload.nn > 1"}, "there is no `nn` in `payload`\nDid you mean 'n'?"),
        (
            {"trigger": "other.event", "params": {"customer": "{{ event.payload.m }}"}},
            "there is no `m` in `event.payload`",
        ),
    ],
)
def test_names_that_will_not_be_there_are_refused_in_rules_and_schedules(
    given: dict[str, Any], problem: str
) -> None:
    sent = Trigger("sent", schema=CLOSED)
    given.setdefault("params", {"customer": "c"})
    if "trigger" in given:
        one: object = Rule("r", action=charge, **given)
    else:
        one = Schedule("s", action=charge, context={"store": 1}, **given)
    assert problem in problems(placed, sent, charge, notify, one, trigger={"other.event": CLOSED})


def test_names_that_may_be_there_are_let_through() -> None:
    params = {"customer": "{{ context.store ~ store ~ scheduled_time ~ context.is_missed }}"}
    daily = Schedule("s", action=charge, cron="@daily", context={"store": 1}, params=params)
    when = "payload.anything and event.payload.more and payload.get('n') and event.created_at"
    Definitions([placed, charge, notify, daily, Rule("r", trigger=placed, action=notify, when=when)]).check()


def test_breaker_of_a_workflow_is_refused() -> None:
    fulfil = from_yaml("workflow: shop.fulfil\ntasks:\n  pay: {action: shop.charge, input: {customer: a}}\n")
    limit = Limit(ref="shop.door", scope="shop.fulfil", breaker={"failures": 3})
    for text in (
        problems(charge, notify, fulfil, limit),
        problems(charge, notify, limit, workflow={"shop.fulfil": None}),
    ):
        assert (
            "limit shop.door: a breaker counts the attempts of actions, and shop.fulfil is a workflow" in text
        )
    Definitions([charge, notify, Limit(ref="shop.door", scope=charge, breaker={"failures": 3})]).check()


def test_the_paths_of_an_actions_limit_are_parameters_that_it_has() -> None:
    limit = Limit(1, ref="shop.each", scope=charge, by="custmer")
    said = problems(charge, notify, limit)
    assert "limit shop.each: there is no `custmer` in `parameters`\nDid you mean 'customer'?" in said
    Definitions([charge, notify, Limit(1, ref="shop.all", scope=notify, by="any.thing")]).check()


def test_a_schedule_of_a_workflow_has_no_retry_policy() -> None:
    flow = Schedule("daily", action="other.flow", cron="@daily", retry={"max_attempts": 3})
    assert "retry: a workflow is not tried again as a whole" in problems(flow, workflow={"other.flow": None})
    Definitions([flow]).check({"action": {"other.flow": None}})


def test_a_value_of_a_secret_is_not_shown() -> None:
    rule = Rule("big", trigger=placed, action=charge, params={"customer": "c", "card": 4111})
    said = problems(placed, charge, notify, rule)
    assert "card: expected string" in said
    assert "4111" not in said


def test_the_same_object_twice_is_once_and_two_of_a_ref_are_refused() -> None:
    assert len(Definitions([placed, placed, charge, charge])) == 2
    with pytest.raises(DefinitionError, match=r"was declared before, at .*test_reference_checks"):
        Definitions([placed, Trigger("shop.placed")])
    assert len(Definitions([placed]) + Definitions([placed, charge])) == 2


def test_an_action_and_a_trigger_may_share_a_ref() -> None:
    assert len(Definitions([Trigger("charge"), charge])) == 2


def test_an_action_and_a_workflow_may_not_as_a_rule_could_mean_either(tmp_path: Path) -> None:
    flow = tmp_path / "flow.yaml"
    flow.write_text("workflow: shop.charge\ntasks:\n  a: {action: shop.notify}\n")
    with pytest.raises(DefinitionError, match=r"workflow shop\.charge was declared before as an action, at "):
        Definitions([charge]) + load(flow)


def test_an_object_that_is_not_a_definition_is_refused() -> None:
    with pytest.raises(DefinitionError, match="is not a definition"):
        Definitions([3])


def test_documents_are_found_by_their_content() -> None:
    one = Document.of("rule", "a.b", {"x": 1, "y": [2]})
    same = Document.of("rule", "a.b", {"y": [2], "x": 1})
    assert one == same
    assert len(one.digest) == 64
    others = [
        Document.of("rule", "a.b", {"x": 2}),
        Document.of("rule", "a.c", one.body),
        Document.of("x", "a.b", one.body),
    ]
    assert len({one.digest, *(other.digest for other in others)}) == 4


@pytest.mark.parametrize("text", ["nul \0", "x" * 2_000_000])
def test_a_definition_that_cannot_be_stored_is_refused(text: str) -> None:
    with pytest.raises(DefinitionError, match=r"test_reference_checks\.py:\d+: trigger shop\.t"):
        Definitions([Trigger("t", description=text)]).documents()


def test_kinds_are_found_by_ref() -> None:
    limit, route = Limit(1, ref="shop.db", scope=pack), Route("a", "b")
    found = Definitions([placed, charge, limit, route])
    assert found.triggers == {"shop.placed": placed}
    assert found.actions == {"shop.charge": charge}
    assert found.limits == {"shop.db": limit}
    assert (found.rules, found.schedules, found.workflows) == ({}, {}, {})


def test_an_action_that_is_missing_in_many_tasks_is_one_line() -> None:
    tasks = "".join(f"  t{n}: {{action: shop.nowhere}}\n" for n in range(40))
    said = problems(
        from_yaml(f"workflow: shop.many\ntasks:\n{tasks}  other: {{action: shop.chrage}}\n"), charge, notify
    )
    assert said.count("shop.nowhere") == 1
    assert "(and at 39 more places: <text>:4, <text>:5, " in said
    assert "there is no action `shop.chrage`. Did you mean 'shop.charge'?" in said
    assert said.endswith("2 problems were found; nothing was stored.")


@pytest.mark.parametrize("field", ["by", "fair"])
def test_secret_parameter_groups_no_executions(field: str) -> None:
    def limit(path: str, scope: Any = charge) -> Limit:
        paths: dict[str, Any] = {field: path}
        return Limit(1, ref="shop.each", scope=scope, **paths)

    for scope in (charge, pack):
        assert f"{field}: `card` is a secret of shop.charge" in problems(charge, notify, limit("card", scope))
    Definitions([charge, notify, limit("customer")]).check()


def test_secret_parameter_groups_no_breaker() -> None:
    breaking = charge.with_options(breaker={"failures": 2, "by": "card"})
    assert "by: `card` is a secret of shop.charge" in problems(breaking, notify)


@pytest.mark.parametrize(
    ("label", "path"),
    [
        ("{{ payload.card }}", "payload.card"),
        ("{{ event.payload.card }}", "event.payload.card"),
        ("card {{ payload['card'] | lower }}", "payload.card"),
        ("{{ payload.buyer.pin }}", "payload.buyer.pin"),
        ("{{ payload | string }}", "payload"),
    ],
)
def test_secret_of_a_payload_becomes_no_label(label: str, path: str) -> None:
    secret = {"type": "string", "secret": True}
    buyer = {"type": "object", "secret": True}
    paid = Trigger("paid", schema={"card": secret, "buyer": buyer, "customer": "string"})
    params = {"customer": "{{ payload.customer }}"}
    rule = Rule("shop.on_paid", trigger=paid, action=charge, params=params, labels={"of": label})
    assert f"labels: `{path}` is a secret of shop.paid" in problems(charge, notify, paid, rule)
    plain = Rule(
        "shop.on_paid", trigger=paid, action=charge, params=params, labels={"of": "{{ payload.customer }}"}
    )
    Definitions([charge, notify, paid, plain]).check()
