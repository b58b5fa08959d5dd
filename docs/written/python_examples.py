"""An example of each public name of `penstock`. A test sees that none is missing, and runs each one."""

from __future__ import annotations

from collections.abc import Mapping

_FLOW = "@workflow(pack='shop')\ndef fulfil(order: int):\n"

EXAMPLES: Mapping[str, str] = {
    "Action": "assert isinstance(charge, Action)\ncharge.ref  # 'shop.charge'",
    "ActionRef": "charged: ActionRef[..., object] = charge\nassert isinstance(charge, ActionRef)",
    "AskInquiry": "def deploy():\n    return AskInquiry('Deploy?', schema={'type': 'boolean'}, timeout=3600, default=False)",
    "Batch": "from pydantic import BaseModel\n\nclass Text(BaseModel):\n    text: str\n\n@action(pack='ai', batch=Batch(100, within='200ms', by='text'))\nasync def embed(items: list[Item[Text]]) -> list[int]:\n    return [len(item.input.text) for item in items]",
    "Breaker": "@action(pack='shop', breaker=Breaker(20, of=50, within='1m', probe='30s', by='host'))\nasync def fetch(host: str) -> None: ...",
    "Client": "async def main():\n    async with Client.connect() as client:\n        return await client.run('shop.charge', {'order': 7}, timeout=10)",
    "Context": "def total(context: Context) -> None:\n    context['total'] = sum(context['prices'])",
    "ContextTask": "pack = Pack('etl')\n\n@task()\nasync def extract(context): ...\n\nassert isinstance(extract, ContextTask)",
    "Defer": "def poll():\n    raise Defer(delay=60, state={'page': 7})  # the next run finds it as current().state",
    "Later": "async def build():\n    run = await begin_build(await current().callback())\n    return Later(f'ci:run:{run}', timeout=172_800)",
    "Definitions": "found = Definitions([charge])\nfound.actions",
    "Document": "document: Document = charge.document()\ndocument.digest",
    "Limit": "Limit(5, by='customer')  # five at once for each customer\nLimit(rate='100/min', burst=10)\nLimit(90_000, per='1m', cost='{{ parameters.tokens }}', unit='tokens')",
    "Item": "from pydantic import BaseModel\n\nclass Text(BaseModel):\n    text: str\n\nassert Item(Text(text='a')).input.text == 'a'  # a worker creates the others, with their runs",
    "MissedFires": "MissedFires(policy='delay', delay='5m', catch_up='all')",
    "NonRetryable": "def pay():\n    raise NonRetryable('no such customer')",
    "Overlap": "overlap: Overlap = 'skip'",
    "Pack": "pack = Pack('shop')  # of all that its module defines",
    "PenstockError": "try:\n    load('nothing.py')\nexcept PenstockError as error:\n    error.message, error.hint",
    "Recovery": "Recovery(on_worker_loss='fail')",
    "Retry": "def pay():\n    raise Retry(after=30, message='the bank is closed')",
    "RetryPolicy": "RetryPolicy(max_attempts=5, initial_delay='1s', max_delay='1m', never_on=[ValueError])",
    "Route": "Route('*::shop::**', 'shop')  # what the pack shop runs goes to the queue shop",
    "Rule": "Rule('shop.charge_big', trigger=order_placed, when='payload.amount > 100', action=charge,\n     params={'order': '{{ payload.id }}'})",
    "Schedule": "Schedule('shop.nightly', action=charge, cron='0 2 * * *', timezone='Europe/Paris', params={'order': 7})",
    "Secret": "from typing import Annotated\n\n@action(pack='shop')\nasync def log_in(password: Annotated[str, Secret]) -> None: ...",
    "Settings": "Settings(concurrency=20, stale_threshold=60)",
    "SyncClient": "def view():\n    with SyncClient.connect() as client:\n        return client.start('shop.charge', {'order': 7})",
    "SyncHttpClient": "def view():\n    with SyncHttpClient('https://penstock.example.org', token='pst_...') as client:\n        return client.start('shop.charge', {'order': 7})",
    "Timeouts": "Timeouts(attempt='30s', total='1h')",
    "Window": "Window(absence=['shop.placed', 'shop.paid'], by='payload.order', within='1h')\nWindow(count=['ops.failed'], at_least=5, by='payload.host', within='10m')",
    "Trigger": "Trigger('shop.order_placed', schema={'id': 'integer', 'amount': 'number'})",
    "Workflow": _FLOW + "    return charge(order=order)\n\nassert isinstance(fulfil, Workflow)",
    "action": "@action(pack='shop', retry={'max_attempts': 3}, timeout='10s')\nasync def book(order: int) -> str:\n    return f'booked {order}'",
    "all_of": _FLOW
    + "    one, two = charge(order=1), charge(order=2)\n    charge(order=3).after(one, two).when(all_of(success(one), failed(two)))",
    "any_of": _FLOW
    + "    one, two = charge(order=1), charge(order=2)\n    charge(order=3).after(one, two).when(any_of(failed(one), failed(two)))",
    "ask": "async def deploy():\n    if await ask('Deploy to production?', schema={'type': 'boolean'}):\n        ...",
    "command_action": "command_action('shop.resize', ['node', 'resize.js'], parameters={'path': 'string'}, timeout='1m')",
    "context": _FLOW + "    charge(order=context.last_order)",
    "current": "def pay():\n    current().idempotency_token  # the same in every attempt\n    current().log('paying')",
    "later": "async def build():\n    return later('ci:run:123', timeout=172_800, heartbeat=600)",
    "DurableContext": "@action(pack='shop')\nasync def order(ctx: DurableContext, id: int) -> str:\n    await ctx.sleep('3d')\n    return await ctx.step('ship', str, id)",
    "each": _FLOW + "    return {'charged': charge(order=each([1, 2, 3], concurrency=2))}",
    "error": _FLOW
    + "    charge(order=order).on('failed()', noop(name='note'), publish={'why': error.message})",
    "event": "@workflow(pack='shop')\ndef wait(order: int):\n    return {'paid': wait_for_event('shop.paid', filter=event.payload.id == parameters.order)}",
    "expr": _FLOW + "    charge(order=expr('[parameters.order, 1] | max'))",
    "fail": _FLOW + "    charge(order=order).on('failed()', fail('it cannot be paid', name='give_up'))",
    "failed": _FLOW + "    paid = charge(order=order)\n    charge(order=0).after(paid).when(failed(paid))",
    "http_action": "http_action('shop.ship', 'https://shop.example.org/ship', parameters={'order': 'integer'})",
    "HttpClient": "async def main():\n    async with HttpClient('https://penstock.example.org', token='pst_...') as client:\n        return await client.run('shop.charge', {'order': 7}, timeout=10)",
    "index": _FLOW + "    task(charge, {'order': index}, with_items='{{ [7, 8] }}')",
    "inquiry": _FLOW
    + "    yes = inquiry('Charge?', schema={'type': 'boolean'}, timeout='1d', default=False)\n    charge(order=order).when(yes == True)",
    "item": _FLOW + "    task(charge, {'order': item}, with_items='{{ [7, 8] }}')",
    "kubernetes_action": "kubernetes_action('ml.train', 'registry.example.org/train:3', parameters={'epochs': 'integer'})",
    "load": "definitions = load('examples/git_history')  # a module, a file, a pack's folder, or a folder of these",
    "none_of": _FLOW
    + "    one, two = charge(order=1), charge(order=2)\n    charge(order=3).after(one, two).when(none_of(failed(one), failed(two)))",
    "noop": _FLOW + "    noop({'doubled': '{{ parameters.order * 2 }}'}, name='sums')",
    "on_exit": _FLOW + "    charge(order=order)\n    on_exit(charge, order=0)",
    "parameters": _FLOW + "    charge(order=parameters.order)",
    "register_executor": "from penstock_worker.executors.python.thread import ThreadExecutor\n\nregister_executor('mine', ThreadExecutor, capacity=4)",
    "result": _FLOW + "    charge(order=order).publish(last=result)",
    "schedule": "@schedule('0 6 * * MON-FRI', timezone='Europe/Paris', params={'day': '{{ scheduled_time[:10] }}'})\n@action(pack='shop')\nasync def report(day: str) -> str:\n    return day",
    "skipped": _FLOW + "    paid = charge(order=order)\n    charge(order=0).after(paid).when(skipped(paid))",
    "success": _FLOW + "    paid = charge(order=order)\n    charge(order=0).after(paid).when(success(paid))",
    "system": _FLOW + "    charge(order=order)\n    on_exit('shop.clean_up', how=system.status)",
    "task": _FLOW + "    task(charge, {'order': order}, name='charge_again', retry={'max_attempts': 3})",
    "trigger": "@trigger('shop.mail', every='1m')\ndef look(state: dict) -> list[dict]:\n    state['seen'] = state.get('seen', 0) + 1\n    return [{'n': state['seen']}]",
    "variables": _FLOW
    + "    first = charge(order=order).publish(last=result)\n    noop({'last': variables.last}, name='note').after(first)",
    "wait_for_event": _FLOW
    + "    paid = wait_for_event('shop.paid', filter='event.payload.id == parameters.order', timeout='1d')\n    charge(order=order).after(paid)",
    "workflow": _FLOW
    + "    first = charge(order=order)\n    return {'first': first, 'second': charge(order=0).after(first)}",
}

BEFORE = """\
from penstock import *

order_placed = Trigger("shop.order_placed")

@action(pack="shop")
async def charge(order: int) -> str: ...
"""
"""What every example may use."""

TESTING_EXAMPLES: Mapping[str, str] = {
    "DurableRun": "import asyncio\n\nfrom penstock import DurableContext, action\nfrom penstock.testing import DurableRun\n\n@action(pack='shop')\nasync def order(ctx: DurableContext) -> bool:\n    return await ctx.ask('Ship it?', schema={'type': 'boolean'})\n\nrun = DurableRun()\nrun.answer(True, after='2h')\nassert asyncio.run(run(order)) is True",
    "Played": "from penstock import Rule, Trigger, Window, action\nfrom penstock.testing import Played, play\n\nplaced = Trigger('shop.placed')\n\n@action(pack='shop')\nasync def alert() -> None: ...\n\nrule = Rule('shop.many', action=alert, window=Window(count=[placed], at_least=2, within='1h'))\nplayed: Played = play(rule, [{'trigger': 'shop.placed', 'payload': {}, 'at': f'{n}s'} for n in range(2)])\nassert len(played.matches) == 1",
    "PlayedMatch": "from penstock import Rule, Trigger, Window, action\nfrom penstock.testing import PlayedMatch, play\n\nplaced = Trigger('shop.placed')\n\n@action(pack='shop')\nasync def alert() -> None: ...\n\nrule = Rule('shop.many', action=alert, window=Window(count=[placed], at_least=2, within='1h'))\nmatch: PlayedMatch = play(rule, [{'trigger': 'shop.placed', 'payload': {}, 'at': f'{n}s'} for n in range(2)]).matches[0]\nassert match.match.params == {}",
    "PublishedEvent": "from penstock import Trigger, action, current\nfrom penstock.testing import PublishedEvent, Simulation\n\npaid = Trigger('shop.paid')\n\n@action(pack='shop')\nasync def pay(order: int) -> None:\n    await current().publish('shop.paid', {'order': order})\n\nsimulation = Simulation(paid, pay)\nevent: PublishedEvent = simulation.run(pay, order=7).published[0]\nassert (event.trigger, event.payload) == ('shop.paid', {'order': 7})",
    "RuleFailure": "from penstock import Rule, Trigger, action\nfrom penstock.testing import RuleFailure, Simulation\n\nplaced = Trigger('shop.placed')\n\n@action(pack='shop')\nasync def charge(order: int) -> None: ...\n\nrule = Rule('shop.charge_all', trigger=placed, action=charge, params={'order': '{{ payload.id }}'})\nsimulation = Simulation(placed, charge, rule)\nassert simulation.publish('shop.placed', {'id': 'seven'}) == []\nfailure: RuleFailure = simulation.rule_failures[0]\nassert (failure.rule, failure.error) == ('shop.charge_all', 'InvalidInput: parameters.order: expected integer, got string')",
    "SimulatedRun": "from penstock import action\nfrom penstock.testing import SimulatedRun, Simulation\n\n@action(pack='shop')\nasync def book(order: int) -> str:\n    return f'booked {order}'\n\nrun: SimulatedRun = Simulation(book).run(book, order=7)\nassert (run.status, run.result) == ('completed', 'booked 7')",
    "Simulation": "from penstock import action\nfrom penstock.testing import Simulation\n\n@action(pack='shop', retry=3)\nasync def book(order: int) -> str:\n    return f'booked {order}'\n\nsimulation = Simulation(book)\nsimulation.fake(book, raises=ConnectionError('the bank is down'), times=1)\nassert len(simulation.run(book, order=7).attempts('book')) == 2",
    "StartedExecution": "import asyncio\n\nfrom penstock import DurableContext, action, current\nfrom penstock.testing import DurableRun, StartedExecution\n\nasync def tell() -> None:\n    await current().start('shop.tell', {'order': 7}, key='tell-7')\n\n@action(pack='shop')\nasync def order(ctx: DurableContext) -> None:\n    await ctx.step('tell', tell)\n\nrun = DurableRun()\nasyncio.run(run(order))\nexecution: StartedExecution = run.started[0]\nassert (execution.ref, execution.key) == ('shop.tell', 'tell-7')",
    "Step": "from penstock import action\nfrom penstock.testing import Simulation, Step\n\n@action(pack='shop')\nasync def book(order: int) -> str:\n    return f'booked {order}'\n\nstep: Step = Simulation(book).run(book, order=7).steps[0]\nassert (step.attempt, step.status, step.input) == (1, 'completed', {'order': 7})",
    "crash_everywhere": "from penstock import DurableContext, action\nfrom penstock.testing import DurableRun, crash_everywhere\n\nasync def send(order: int) -> str:\n    return f'parcel-{order}'\n\n@action(pack='shop')\nasync def deliver(ctx: DurableContext, order: int) -> str:\n    return await ctx.step('send', send, order)\n\n@crash_everywhere\nasync def test_delivery(run: DurableRun) -> None:\n    assert await run(deliver, order=7) == 'parcel-7'\n\ntest_delivery()  # pytest calls it",
    "evaluate": "from penstock.testing import evaluate\n\nassert evaluate('payload.amount * 2', payload={'amount': 25}) == 50",
    "play": "from penstock import Rule, Trigger, Window, action\nfrom penstock.testing import play\n\nplaced = Trigger('shop.placed')\n\n@action(pack='shop')\nasync def alert() -> None: ...\n\nrule = Rule('shop.many', action=alert, window=Window(count=[placed], at_least=2, within='1h'))\nassert not play(rule, [{'trigger': 'shop.placed', 'payload': {}, 'at': '0s'}]).matches",
    "try_rule": "from penstock import Rule, Trigger, action\nfrom penstock.testing import try_rule\n\nplaced = Trigger('shop.placed')\n\n@action(pack='shop')\nasync def charge(order: int) -> None: ...\n\nrule = Rule('shop.charge_big', trigger=placed, when='payload.amount > 100', action=charge, params={'order': '{{ payload.id }}'})\nassert try_rule(rule, {'id': 7, 'amount': 250}).params == {'order': 7}",
}
"""An example of each public name of `penstock.testing`."""

RETURNED_EXAMPLES: Mapping[str, str] = {
    "Breakers": "from penstock import Client\n\nasync def main() -> None:\n    async with Client.connect() as client:\n        await client.breakers.open('shop.charge', reason='the bank is down', by='ada')",
    "Holds": "from penstock import Client\n\nasync def main() -> None:\n    async with Client.connect() as client:\n        await client.holds.all()",
    "Limits": "from penstock import Client\n\nasync def main() -> None:\n    async with Client.connect() as client:\n        await client.limits.set('store.all', scope='store', max=50)",
    "Rules": "from penstock import Client\n\nasync def main() -> None:\n    async with Client.connect() as client:\n        await client.rules.enable('shop.big_orders', False)",
    "RunContext": "from penstock import action, current\n\n@action(pack='shop')\nasync def charge(order: int) -> None:\n    current().log(f'charging {order}')\n    await current().publish('shop.charged', {'order': order}, transactional=True)",
    "Schedules": "from penstock import Client\n\nasync def main() -> None:\n    async with Client.connect() as client:\n        await client.schedules.pause('store.nightly', 3600)",
    "Views": "from penstock import Client\nfrom penstock.operate.saved_views import filter_of\n\nasync def main() -> None:\n    async with Client.connect() as client:\n        await client.views.create('Failed today', {'status': ['failed'], 'since': '24h'}, by='ada', shared=True)\n        view = await client.views.get('Failed today')\n        print(await client.executions(filter_of(view)))",
    "Workers": "from penstock import Client\n\nasync def main() -> None:\n    async with Client.connect() as client:\n        await client.workers.cordon(['worker-1'], True)",
    "TaskHandle": "from penstock import action, failed, workflow\n\n@action(pack='shop')\nasync def charge(order: int) -> dict[str, int]: ...\n\n@action(pack='shop')\nasync def refund(order: int) -> None: ...\n\n@workflow(pack='shop')\ndef settle(order: int):\n    charged = charge(order=order).set(retry=3, timeout='30s').publish(total=order)\n    refund(order=order).after(charged).when(failed(charged))\n    return {'cents': charged.cents}",
}
"""An example of each class that users get from a public name."""
