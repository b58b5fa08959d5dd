"""Workflows with tasks that wait: for events, and for the answers of humans."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from penstock import Trigger, action
from penstock.language.workflows import from_yaml
from tests.flows.installation import Installation


@action(pack="wf")
async def echo(value: Any = None) -> Any:
    return value


paid = Trigger("shop.paid")

ORDER = from_yaml("""
workflow: wf.order
parameters: {order: {type: integer, required: true}}
tasks:
  before: {action: wf.echo, input: {value: 1}}
  payment:
    needs: [before]
    wait_for_event: {trigger: shop.paid, filter: event.payload.order == parameters.order, timeout: 60}
  after: {action: wf.echo, needs: [payment], input: {value: "{{ tasks.payment.result.payload.amount }}"}}
output: "{{ tasks.after.result }}"
""")

IMPATIENT = from_yaml("""
workflow: wf.impatient
tasks:
  payment:
    wait_for_event: {trigger: shop.paid, timeout: 0.2}
    next: [{when: timed_out(), do: remind}]
  remind: {action: wf.echo, input: {value: reminded}}
output: "{{ tasks.remind.result }}"
""")

ASKING = from_yaml("""
workflow: wf.asking
parameters: {who: {}}
tasks:
  ask:
    inquiry:
      prompt: "May {{ parameters.who }} pass?"
      schema: {type: boolean}
      assignee: ada
      timeout: 60
  pass: {action: wf.echo, needs: [ask], input: {value: "{{ tasks.ask.result }}"}}
output: "{{ tasks.pass.result }}"
""")

DEFAULTING = from_yaml("""
workflow: wf.defaulting
parameters: {default: {}}
tasks:
  ask: {inquiry: {prompt: "How many?", schema: {type: integer}, timeout: 0.2, default: "{{ parameters.default }}"}}
output: "{{ tasks.ask.result }}"
""")

LARGE = from_yaml("""
workflow: wf.large
tasks:
  payment: {wait_for_event: {trigger: shop.paid, filter: event.payload.amount > 3}}
output: "{{ tasks.payment.result.payload.amount }}"
""")

TWICE = from_yaml("""
workflow: wf.twice
tasks:
  first: {wait_for_event: {trigger: shop.paid}}
  second: {needs: [first], wait_for_event: {trigger: shop.paid}}
output: ["{{ tasks.first.result.payload.n }}", "{{ tasks.second.result.payload.n }}"]
""")

EACH = from_yaml("""
workflow: wf.each
tasks:
  all:
    with_items: [1, 2, 3]
    wait_for_event: {trigger: shop.paid, filter: event.payload.n == item}
output: "{{ tasks.all.result | map(attribute='payload') | map(attribute='n') | list }}"
""")

ALL = (echo, paid, ORDER, IMPATIENT, ASKING, DEFAULTING, TWICE, EACH, LARGE)
WAITING = "select id from execution where parent = $1 and status = 'waiting'"


async def waiting(house: Installation, run: UUID) -> UUID:
    """The task of this run that waits."""
    id: UUID = (await house.until(WAITING, run))[0]["id"]
    return id
