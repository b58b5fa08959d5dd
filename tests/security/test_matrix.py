"""Every route of the API and its pages, as every scope and role, of all tenants and of another tenant.

The table below says what each route needs. It is written by hand and holds each route of the app, so that a new route fails until
somebody says who may call it. From a line follows the answer to each caller.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from uuid import UUID

import httpx
import pytest
from fastapi.routing import iter_route_contexts

from penstock.operate.access import ROLES, SCOPES, WORK
from tests.penstock_api.conftest import Api

_TABLE = """
POST    /api/v1/events                                 publish own
GET     /api/v1/events                                 read    own
GET     /api/v1/events/{id}                            read    own
GET     /api/v1/enforcements                           read    own
GET     /api/v1/recoveries                             read    own
POST    /api/v1/executions                             start   own
GET     /api/v1/executions                             read    own
GET     /api/v1/executions/{id}                        read    own
GET     /api/v1/executions/{id}/result                 read    own
GET     /api/v1/executions/{id}/graph                  read    own
GET     /api/v1/executions/{id}/history                read    own
GET     /api/v1/executions/{id}/attempts               read    own
GET     /api/v1/executions/{id}/steps                  read    own
GET     /api/v1/executions/{id}/logs                   read    own
GET     /api/v1/executions/{id}/why                    read    own
POST    /api/v1/executions/{id}/cancel                 operate own
POST    /api/v1/executions/{id}/priority               operate own
POST    /api/v1/executions/{id}/reschedule             operate own
POST    /api/v1/executions/{id}/budget                 operate own
GET     /api/v1/breakers                               read    all
POST    /api/v1/breakers/open                          operate all
POST    /api/v1/breakers/close                         operate all
GET     /api/v1/holds                                  read    all
POST    /api/v1/holds                                  operate all
POST    /api/v1/holds/release                          operate all
POST    /api/v1/executions/{id}/rerun                  operate own
GET     /api/v1/views                                  read    own
GET     /api/v1/views/named                            read    own
GET     /api/v1/views/{id}                             read    own
POST    /api/v1/views                                  read    own
PATCH   /api/v1/views/{id}                             read    own
DELETE  /api/v1/views/{id}                             read    own
POST    /api/v1/bulk/executions/cancel                 operate own
POST    /api/v1/bulk/executions/rerun                  operate own
POST    /api/v1/bulk/dead-letters/replay               operate all
POST    /api/v1/bulk/dead-letters/drop                 operate all
POST    /api/v1/executions/{id}/pause                  operate own
POST    /api/v1/executions/{id}/resume                 operate own
POST    /api/v1/executions/{id}/skip                   operate own
POST    /api/v1/executions/{id}/set-result             operate own
POST    /api/v1/executions/{id}/complete               operate own
POST    /api/v1/executions/{id}/signal                 operate own
POST    /api/v1/signals                                operate own
GET     /api/v1/actions                                read    own
GET     /api/v1/actions/{ref}                          read    own
POST    /api/v1/definitions/{ref}/retire               define  all
POST    /api/v1/definitions/{ref}/restore              define  all
GET     /api/v1/triggers                               read    own
GET     /api/v1/triggers/{ref}                         read    own
POST    /api/v1/triggers/{ref}/try                     read    public
GET     /api/v1/rules                                  read    own
GET     /api/v1/rules/{ref}                            read    own
PUT     /api/v1/rules/{ref}                            define  all
POST    /api/v1/rules/{ref}/enable                     operate all
POST    /api/v1/rules/{ref}/disable                    operate all
DELETE  /api/v1/rules/{ref}                            define  all
POST    /api/v1/rules/{ref}/replay                     operate own
GET     /api/v1/rule-errors                            read    all
POST    /api/v1/rule-errors/rerun                      operate all
GET     /api/v1/workflows                              read    own
GET     /api/v1/workflows/{ref}                        read    own
GET     /api/v1/workflows/{ref}/versions               read    own
GET     /api/v1/workflows/{ref}/graph                  read    own
GET     /api/v1/workflows/{ref}/diff                   read    own
GET     /api/v1/schedules                              read    all
POST    /api/v1/schedules                              define  all
GET     /api/v1/schedule-health                        read    all
POST    /api/v1/schedule-pauses                        operate all
GET     /api/v1/schedules/{ref}                        read    all
GET     /api/v1/schedules/{ref}/definition             read    all
PUT     /api/v1/schedules/{ref}                        define  all
PATCH   /api/v1/schedules/{ref}                        define  all
DELETE  /api/v1/schedules/{ref}                        define  all
GET     /api/v1/schedules/{ref}/preview                read    all
GET     /api/v1/schedules/{ref}/history                read    all
GET     /api/v1/schedules/{ref}/stats                  read    all
POST    /api/v1/schedules/{ref}/enable                 operate all
POST    /api/v1/schedules/{ref}/disable                operate all
POST    /api/v1/schedules/{ref}/pause                  operate all
POST    /api/v1/schedules/{ref}/run                    operate all
POST    /api/v1/schedules/{ref}/backfill               operate all
GET     /api/v1/inquiries                              read    own
POST    /api/v1/inquiries/{id}/answer                  answer  own
GET     /api/v1/limits                                 read    all
GET     /api/v1/limits/{ref}                           read    all
GET     /api/v1/limits/{ref}/totals                    read    all
GET     /api/v1/limits/{ref}/holders                   read    all
GET     /api/v1/limits/{ref}/waiters                   read    all
PATCH   /api/v1/limits/{ref}                           define  all
DELETE  /api/v1/limits/{ref}                           define  all
GET     /api/v1/lines                                  read    all
GET     /api/v1/queues                                 read    all
GET     /api/v1/routes                                 read    all
GET     /api/v1/route-rules                            read    all
DELETE  /api/v1/route-rules/{pattern}                  define  all
GET     /api/v1/route-choice                           read    all
GET     /api/v1/overview                               read    all
GET     /api/v1/workers                                read    all
GET     /api/v1/workers/{name}                         read    all
POST    /api/v1/workers/{name}/cordon                  operate all
POST    /api/v1/workers/{name}/uncordon                operate all
GET     /api/v1/check                                  read    all
GET     /api/v1/doctor                                 read    all
GET     /api/v1/dead-letters                           read    all
GET     /api/v1/dead-letters/{id}                      read    all
POST    /api/v1/dead-letters/{id}/replay               operate all
DELETE  /api/v1/dead-letters/{id}                      operate all
GET     /api/v1/stream                                 read    own
GET     /api/v1/webhooks                               read    all
GET     /api/v1/webhook-refusals                       read    all
PUT     /api/v1/webhooks/{name}                        define  all
DELETE  /api/v1/webhooks/{name}                        define  all
GET     /api/v1/subscriptions                          read    all
PUT     /api/v1/subscriptions/{name}                   define  all
POST    /api/v1/subscriptions/{name}/enable            define  all
DELETE  /api/v1/subscriptions/{name}                   define  all
GET     /api/v1/secrets                                read    own
PUT     /api/v1/secrets/{name}                         define  own
DELETE  /api/v1/secrets/{name}                         define  public
GET     /api/v1/tokens                                 admin   all
POST    /api/v1/tokens                                 admin   all
DELETE  /api/v1/tokens/{name}                          admin   all
POST    /api/v1/tokens/{name}/rotate                   admin   all
GET     /api/v1/session                                read    own
POST    /api/v1/work/hello                             work    own
POST    /api/v1/work/take                              work    own
POST    /api/v1/work/beat                              work    own
POST    /api/v1/work/log                               work    own
POST    /api/v1/work/progress                          work    own
POST    /api/v1/work/finish                            work    own
POST    /api/v1/work/bye                               work    own
GET     /api/v1/users                                  admin   all
POST    /api/v1/users                                  admin   all
PUT     /api/v1/users/{name}/roles                     admin   all
PUT     /api/v1/users/{name}/password                  admin   all
DELETE  /api/v1/users/{name}/sessions                  admin   all
DELETE  /api/v1/users/{name}/totp                      admin   all
DELETE  /api/v1/users/{name}                           admin   all
GET     /api/v1/audit                                  admin   all
GET     /api/v1/audit/head                             admin   all
PUT     /api/v1/account/password                       read    own
GET     /api/v1/account/totp                           read    own
POST    /api/v1/account/totp                           read    own
POST    /api/v1/account/totp/confirm                   read    own
POST    /api/v1/account/totp/off                       read    own
GET     /api/v1/account/sessions                       read    own
DELETE  /api/v1/account/sessions                       read    own
DELETE  /api/v1/account/sessions/{id}                  read    own
POST    /api/v1/session                                open
POST    /api/v1/session/code                           open
DELETE  /api/v1/session                                open
POST    /hooks/{name}                                  open
POST    /callbacks/{signed}                            open
GET     /                                              read    own
GET     /executions                                    read    own
GET     /executions/many                               operate own
POST    /executions/many                               operate own
GET     /executions/{id}                               read    own
POST    /executions/{id}/lines                         read    own
GET     /actions                                       read    own
GET     /actions/{ref}                                 read    own
GET     /events                                        read    own
GET     /events/{id}                                   read    own
GET     /enforcements                                  read    own
GET     /rules                                         read    own
GET     /rules/new                                     define  all
GET     /rules/{ref}                                   read    own
POST    /rules/{ref}                                   read    own
GET     /schedules                                     read    all
GET     /schedules/new                                 define  all
GET     /schedules/{ref}                               read    all
GET     /holds                                         read    all
GET     /limits                                        read    all
GET     /limits/{ref}                                  read    all
GET     /inquiries                                     read    own
GET     /dead-letters                                  read    all
GET     /dead-letters/many                             operate all
POST    /dead-letters/many                             operate all
GET     /dead-letters/{id}                             read    all
GET     /workers                                       read    all
GET     /users                                         admin   all
GET     /tokens                                        admin   all
GET     /secrets                                       read    own
GET     /webhooks                                      read    all
GET     /subscriptions                                 read    all
GET     /audit                                         admin   all
GET     /account                                       read    own
POST    /account/totp                                  read    own
POST    /account/totp/confirm                          read    own
POST    /account/totp/off                              read    own
GET     /static/{version}/{name}                       open
GET     /sign-in                                       open
POST    /sign-in                                       open
POST    /sign-out                                      open
GET     /sign-in/code                                  open
POST    /sign-in/code                                  open
GET     /sign-in/provider                              open
GET     /sign-in/provider/back                         open
GET     /docs                                          open
GET     /docs/description.css                          open
GET     /schemas/{name}                                open
GET     /api/v1/openapi.json                           open
"""
"""Method, path, scope; and `all` where a route belongs to all tenants together, `own` where a caller of some is let in, and
`public` where it is let in for the tenants that it names, and names none here, which is to say the tenant public."""
STRANGER = "stranger"
"""A tenant of which nothing exists."""
NARROW = ("start", "publish", "answer")
"""Scopes of which `operate` is the sum, with others."""
ABSENT = {"ref": "no.such", "name": "nobody", "pattern": "x", "version": "0", "signed": "forged"}
"""What is in the paths beside ids: nothing of that name exists, so that no request of an admitted caller changes anything."""


@dataclass(frozen=True, slots=True)
class Route:
    method: str
    path: str
    scope: str
    reach: str

    def address(self, id: UUID) -> str:
        return self.path.format(id=id, **ABSENT)


@dataclass(frozen=True, slots=True)
class Asker:
    """A caller: the name of its token, the scopes, and whether it is for one tenant alone."""

    name: str | None
    scopes: frozenset[str]
    limited: bool


TABLE = [Route(*words, *[""] * (4 - len(words))) for words in map(str.split, _TABLE.strip().splitlines())]
GUARDED = [route for route in TABLE if route.scope != "open"]


def expected(route: Route, asker: Asker) -> set[str]:
    """Return the answers that the line of a route allows for a caller."""
    if asker.name is None:
        return {"401"}
    if route.scope not in asker.scopes or (asker.limited and route.reach in ("all", "public")):
        return {"403"}
    if asker.limited and "{id}" in route.path:
        return {"404"}
    return {"in"}


def kind_of(answer: httpx.Response) -> str:
    if answer.status_code in (401, 403, 404):
        return str(answer.status_code)
    return "in" if answer.status_code < 500 else f"{answer.status_code}"


async def askers(api: Api) -> list[Asker]:
    """Return a caller without a token; and each scope alone and each role, for all tenants and for one."""
    found = [Asker(None, frozenset(), False)]
    kinds = {**{scope: (scope,) for scope in (*SCOPES, *NARROW, WORK)}, **ROLES}
    for kind, scopes in kinds.items():
        for limited in (False, True):
            name = f"matrix-{kind}-{limited}"
            if name not in api.secrets:
                await api.token(name, *scopes, tenants=(STRANGER,) if limited else ())
            found.append(Asker(name, frozenset((*scopes, *(NARROW if "operate" in scopes else ()))), limited))
    return found


def test_the_table_holds_each_route_and_no_other(api: Api) -> None:
    routes = {
        (method, context.path)
        for context in iter_route_contexts(api.app.routes)
        for method in context.methods or ()
    }
    declared = [(route.method, route.path) for route in TABLE]
    assert routes - set(declared) == set(), "say in the table who may call these routes"
    assert set(declared) - routes == set(), "these routes are gone"
    assert len(declared) == len(set(declared))


async def test_each_caller_gets_the_answer_of_the_table(api: Api) -> None:
    id = await api.house.client.start("shop.count", {"words": "ours"})
    await api.house.client.result(id, timeout=30)
    event = await api.house.client.publish("shop.order_placed", {"id": 1})
    asked: Counter[str] = Counter()
    wrong = []
    for asker in await askers(api):
        async with api.caller(asker.name) as caller:
            for route in GUARDED:
                answer = await ask(caller, route, event if "/events/" in route.path else id)
                kind = kind_of(answer)
                if kind == "404" and not asker.limited:
                    kind = "in"  # nothing of that name exists, which a caller that is let in is told
                if kind == "404" and "{id}" not in route.path:
                    kind = "in"
                asked[kind] += 1
                if kind not in expected(route, asker):
                    wrong.append(
                        (asker.name, route.method, route.path, answer.status_code, answer.text[:200])
                    )
                if asker.limited:
                    assert "ours" not in answer.text, route
    assert not wrong, "\n".join(map(str, wrong))
    assert asked.total() == len(GUARDED) * (1 + 2 * (len(SCOPES) + len(NARROW) + 1 + len(ROLES)))
    assert min(asked["401"], asked["403"], asked["404"], asked["in"]) > 50
    print(f"{asked.total()} requests to {len(GUARDED)} routes: {dict(asked)}")
    await api.house.sound()


async def ask(caller: httpx.AsyncClient, route: Route, id: UUID) -> httpx.Response:
    params = {"seconds": "0.01"} if route.path.endswith("/stream") else {}
    return await caller.request(route.method, route.address(id), json={}, params=params)


async def test_open_routes_answer_without_a_token(api: Api) -> None:
    open_routes = [route for route in TABLE if route.scope == "open"]
    assert len(open_routes) == 17
    async with api.caller(None) as caller:
        for route in open_routes:
            answer = await ask(caller, route, UUID(int=0))
            assert answer.status_code < 500, (route, answer.text)
            assert not [secret for secret in api.secrets.values() if secret in answer.text]


@pytest.mark.parametrize("line", ["GET /api/v1/tokens read all", "GET /api/v1/tokens admin own"])
async def test_a_wrong_line_is_found(api: Api, line: str) -> None:
    """The matrix finds a route that lets in more, or fewer, than its line says."""
    route = Route(*line.split())
    wrong = 0
    for asker in await askers(api):
        async with api.caller(asker.name) as caller:
            kind = kind_of(await ask(caller, route, UUID(int=0)))
            wrong += kind not in expected(route, asker)
    assert wrong
