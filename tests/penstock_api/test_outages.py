"""Every route while the database is away: each form in which the driver reports it is answered 503 with Retry-After."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import asyncpg
import httpx
import pytest
import tenacity
from pydantic import SecretStr

from penstock.client.client import Client
from penstock.operate import people
from penstock.store.session import database as database_module
from penstock.store.session.database import Database
from penstock_api import session_pool
from penstock_api.app import make_app
from penstock_api.backend import Backend
from tests.penstock.operate.keys import KEY
from tests.penstock_api.auth.test_access import routes
from tests.penstock_api.conftest import Api

PASSWORD = "a password of some length"
ID = "01a22c78-ecc2-702f-b518-482357153351"
FORMS: dict[str, Callable[[], BaseException]] = {
    "reset": lambda: ConnectionResetError(104, "Connection reset by peer"),
    "closed in mid-query": lambda: asyncpg.ConnectionDoesNotExistError(
        "connection was closed in the middle of operation"
    ),
    "closed": lambda: asyncpg.InterfaceError("connection is closed"),
    "garbled": lambda: asyncpg.InternalClientError("got result for unknown protocol state 3"),
    "admin shutdown": lambda: asyncpg.AdminShutdownError(
        "terminating connection due to administrator command"
    ),
    "crash": lambda: asyncpg.CrashShutdownError(
        "terminating connection because of crash of another server process"
    ),
    "timeout": TimeoutError,
    "statement timeout": lambda: asyncpg.QueryCanceledError("canceling statement due to statement timeout"),
    "standby": lambda: asyncpg.ReadOnlySQLTransactionError(
        "cannot execute INSERT in a read-only transaction"
    ),
    "failed transaction": lambda: asyncpg.InFailedSQLTransactionError(
        "current transaction is aborted, commands ignored until end of transaction block"
    ),
    "disk full": lambda: asyncpg.DiskFullError("could not extend file"),
    "no schema": lambda: asyncpg.UndefinedTableError('relation "catalog" does not exist'),
    "no right": lambda: asyncpg.InsufficientPrivilegeError("permission denied for table catalog"),
    "earlier schema": lambda: asyncpg.InternalServerError("cache lookup failed for type 16408"),
    "full": lambda: asyncpg.TooManyConnectionsError("sorry, too many clients already"),
}
PUBLIC_PAGES = {"POST /sign-in", "POST /sign-in/code", "GET /docs"}
"""Pages that answer callers without any right, and so also where the role of the API lacks a right."""
BODIES: dict[str, Any] = {
    "POST /api/v1/bulk/executions/cancel": {"chosen": {"action": "shop.count"}},
    "POST /api/v1/bulk/executions/rerun": {"chosen": {"action": "shop.count"}},
    "POST /api/v1/bulk/dead-letters/replay": {"queue": "work.default"},
    "POST /api/v1/bulk/dead-letters/drop": {"queue": "work.default"},
    "POST /api/v1/views": {"name": "x", "filters": {"action": "shop.count"}},
    "POST /api/v1/executions/{id}/complete": {"result": 1},
    "PUT /api/v1/rules/{ref}": {"action": "shop.count", "trigger": "shop.order_placed"},
    "POST /api/v1/rule-errors/rerun": {"rule": "shop.count"},
    "PUT /api/v1/schedules/{ref}": {"action": "shop.count", "cron": "0 3 * * *"},
    "POST /api/v1/holds": {"kind": "action", "name": "shop.count"},
    "POST /api/v1/holds/release": {"kind": "action", "name": "shop.count"},
    "PUT /api/v1/secrets/{name}": {"value": "a secret value"},
    "POST /api/v1/tokens": {"name": "x", "scopes": ["read"]},
    "POST /api/v1/users": {"name": "x", "roles": ["viewer"], "password": "a password of some length"},
    "PUT /api/v1/users/{name}/password": {"password": "a password of some length"},
    "PUT /api/v1/account/password": {
        "current_password": "a password of some length",
        "password": "another password of some length",
    },
    "POST /api/v1/work/hello": {
        "name": "x", "language": "x", "sdk": "x", "actions": [{"ref": "shop.count"}], "slots": 1,
    },
    "POST /api/v1/work/take": {"request": ID, "slots": 1, "wait": 0},
    "POST /api/v1/work/beat": {"holding": [{"execution": ID, "attempt": 1}], "wait": 0},
    "POST /api/v1/work/log": {"lines": [{"execution": ID, "attempt": 1, "seq": 1, "line": "x"}]},
    "POST /api/v1/work/progress": {"reports": [{"execution": ID, "attempt": 1, "seq": 1, "done": 0.5}]},
    "POST /api/v1/work/finish": {"ends": [{"execution": ID, "attempt": 1, "outcome": "completed"}]},
    "POST /executions/{id}/lines": {"after": {}},
}  # fmt: skip
"""The bodies of requests that a sample of the description's schema does not fit."""
PARAMS: dict[str, dict[str, str]] = {
    "GET /api/v1/views/named": {"name": "x"},
    "GET /api/v1/route-choice": {"of": "shop.count"},
    "GET /executions/many": {"does": "cancel", "action": "shop.count"},
    "GET /dead-letters/many": {"does": "drop", "queue": "work.default"},
}
PAGE_FORMS = {
    "POST /account/totp": {"current_password": PASSWORD},
    "POST /account/totp/confirm": {"code": "123456"},
    "POST /account/totp/off": {"current_password": PASSWORD},
    "POST /executions/many": {"does": "cancel", "action": "shop.count"},
    "POST /dead-letters/many": {"does": "drop", "queue": "work.default"},
}
"""The forms that pages send."""
OWN_CONNECTIONS = {"GET /api/v1/doctor"}
"""The routes with connections of their own. Their answer names the outage, and takes seconds."""
WITHOUT_DATABASE = {
    *("GET /api/v1/stream", "GET /api/v1/session", "DELETE /api/v1/session"),
    *("GET /static/{version}/{name}", "GET /schemas/{name}", "GET /docs", "GET /docs/description.css"),
    *(
        "GET /api/v1/openapi.json",
        "GET /sign-in",
        "GET /sign-in/code",
        "POST /sign-out",
        "GET /sign-in/provider",
    ),
    "POST /callbacks/{signed}",
}
"""The routes that ask the database nothing for this caller."""
UNAFFECTED = {"GET /sign-in/provider/back", "GET /api/v1/stream"}
"""The routes that need nothing of what they ask: the first only notes a refusal, and a stream tries again while it is open."""
STATEMENTS = ("fetch", "fetchval", "fetchrow", "execute", "executemany")
BEHIND_REQUESTS = (
    "gateway ",
    "look for parked work",
    "return a take",
    "refused calls",
    "refused webhook calls",
)
"""The beginnings of the names of tasks that no request waits for. Each task is tried again, so no answer names its outage."""


class Fault:
    """The fault of all connections: when `passing` statements have passed, each further one raises `form`."""

    def __init__(self) -> None:
        self.form: Callable[[], BaseException] | None = None
        self.passing = self.raised = 0

    def strike(self) -> None:
        task = asyncio.current_task()
        if self.form is None or (task is not None and task.get_name().startswith(BEHIND_REQUESTS)):
            return
        if self.passing:
            self.passing -= 1
            return
        self.raised += 1
        raise self.form()

    def begin(self, form: Callable[[], BaseException], passing: int = 0) -> None:
        self.form, self.passing, self.raised = form, passing, 0

    def end(self) -> None:
        self.form = None


class Faulty:
    """A connection whose statements meet the fault."""

    def __init__(self, connection: Any, fault: Fault) -> None:
        self._connection, self._fault = connection, fault

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._connection, name)
        if name not in STATEMENTS:
            return method

        async def call(*args: Any, **named: Any) -> Any:
            if args[0] != "rollback":  # an error that the caller gets stays the same, whatever comes of it
                self._fault.strike()
            return await method(*args, **named)

        return call


@pytest.fixture(autouse=True)
def one_try(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two tries without a pause, since each request would go on for half a minute."""

    def backoff(*_: object, **__: object) -> tenacity.AsyncRetrying:
        return tenacity.AsyncRetrying(
            retry=tenacity.retry_if_exception(database_module.is_transient),
            stop=tenacity.stop_after_attempt(2),
            reraise=True,
        )

    monkeypatch.setattr(database_module, "backoff", backoff)


@asynccontextmanager
async def serving(api: Api, fault: Fault | None = None, **settings: Any) -> AsyncIterator[httpx.AsyncClient]:
    options = api.house.settings(**{"api_access": "open", "secrets_key": KEY, **settings})
    database = Database(options, role="test")
    if fault is not None:
        connect = database.connect

        async def faulty(**named: Any) -> Any:
            return Faulty(await connect(**named), fault)

        database.connect = faulty  # type: ignore[method-assign]
    backend = Backend.of(Client(options, database, api.house.client.publisher))
    app = make_app(backend)
    transport = httpx.ASGITransport(app, raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost", timeout=30) as call:
        call.app = app  # type: ignore[attr-defined]
        yield call
    if fault is not None:
        fault.form = None
    await backend.close()
    await database.close()


async def ask(
    call: httpx.AsyncClient, document: dict[str, Any], method: str, path: str, **options: Any
) -> httpx.Response:
    """Send a request that the route takes, so that its endpoint runs."""
    place = f"{method} {path}"
    address = path.format(id=ID, ref="shop.count", name="shop", pattern="x", signed="x", version="x")
    params = PARAMS.get(place, {"seconds": "0.01"} if path.endswith("/stream") else {})
    if place in PAGE_FORMS:
        options |= {"data": PAGE_FORMS[place], "headers": {"origin": "http://localhost"}}
    else:
        options["json"] = BODIES[place] if place in BODIES else body_of(document, method, path)
    return await asyncio.wait_for(call.request(method, address, params=params, **options), 20)


def fault_of(answer: httpx.Response) -> str | None:
    """Return what is wrong with the answer to a request that met the outage; None if nothing is."""
    if answer.status_code != 503 or answer.headers.get("retry-after") != "1":
        return f"{answer.status_code} {answer.headers.get('retry-after')} {answer.text[:200]}"
    is_html = answer.headers["content-type"].startswith("text/html")
    return None if is_html or "hint" in answer.json() else f"no hint: {answer.text[:200]}"


@pytest.mark.parametrize(("form", "passing"), [*((form, 0) for form in FORMS), ("reset", 1), ("reset", 3)])
async def test_each_route_answers_an_outage_with_503(api: Api, form: str, passing: int) -> None:
    """The outage begins when so many statements of the request have passed."""
    fault, wrong, struck = Fault(), [], set()
    async with serving(api, fault) as call:
        document = (await call.get("/api/v1/openapi.json")).json()
        worker = await session_of_worker(call)
        for method, path, _ in routes(call.app):  # type: ignore[attr-defined]
            place = f"{method} {path}"
            if "/account" in path or place in OWN_CONNECTIONS:
                continue
            headers = worker if path.startswith("/api/v1/work/") else {}
            fault.begin(FORMS[form], passing)
            answer = await ask(call, document, method, path, headers=headers)
            fault.end()
            if fault.raised:
                struck.add(place)
                if passing and 400 <= answer.status_code < 500:
                    continue  # the database had answered, and the outage met only the note of the refusal
                spared = UNAFFECTED | (PUBLIC_PAGES if form == "no right" else set())
                if place not in spared and (problem := fault_of(answer)):
                    wrong.append(f"{place}: {problem}")
            elif answer.status_code >= 500:
                wrong.append(f"{place}: {answer.status_code} {answer.text[:200]}")
            if not passing and not fault.raised and place not in WITHOUT_DATABASE:
                wrong.append(f"{place} has met nothing: {answer.status_code} {answer.text[:200]}")
    assert not wrong, "\n".join(wrong)
    assert len(struck) > (150 if not passing else 40 if passing == 1 else 5)


async def session_of_worker(call: httpx.AsyncClient) -> dict[str, str]:
    hello = {"name": "w", "language": "x", "sdk": "x", "actions": [{"ref": "shop.count"}], "slots": 1}
    welcome = (await call.post("/api/v1/work/hello", json=hello)).json()
    return {"penstock-session": welcome["session"]}


async def test_each_route_of_an_account_answers_an_outage_with_503(api: Api) -> None:
    """They take the session of a user alone."""
    name = "outage"
    await people.create(api.house.session, name, PASSWORD, ["administrator"], by="test")
    fault, wrong, count = Fault(), [], 0
    async with serving(api, fault, api_access="token") as call:
        document = (await call.get("/api/v1/openapi.json")).json()
        assert (
            await call.post("/api/v1/session", json={"name": name, "password": PASSWORD})
        ).status_code == 200
        for method, path, _ in routes(call.app):  # type: ignore[attr-defined]
            for form in FORMS if "/account" in path else ():
                assert (await call.get("/api/v1/session")).status_code == 200, "the caller is known"
                fault.begin(FORMS[form])
                answer = await ask(call, document, method, path, headers={"origin": "http://localhost"})
                fault.end()
                count += 1
                problem = fault_of(answer)
                if not fault.raised or problem:
                    wrong.append(f"{method} {path} {form}: {fault.raised} {problem}")
    assert not wrong, "\n".join(wrong)
    assert count >= 10 * len(FORMS)


async def test_each_route_answers_503_where_no_server_listens(api: Api) -> None:
    wrong = []
    async with serving(api, database_url=SecretStr("postgresql://127.0.0.1:1/none")) as call:
        document = (await call.get("/api/v1/openapi.json")).json()
        for method, path, _ in routes(call.app):  # type: ignore[attr-defined]
            place = f"{method} {path}"
            if (
                "/account" in path
                or place in WITHOUT_DATABASE | UNAFFECTED | OWN_CONNECTIONS
                or path.startswith("/api/v1/work/")
            ):
                continue
            answer = await ask(call, document, method, path)
            if problem := fault_of(answer):
                wrong.append(f"{place}: {problem}")
    assert not wrong, "\n".join(wrong)


async def test_request_without_a_free_session_is_answered_503(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session_pool, "PATIENCE", 0.01)
    async with serving(api) as call:
        backend: Backend = call.app.state.backend  # type: ignore[attr-defined]
        async with backend.pool.session():
            answers = [
                await asyncio.create_task(call.get(path))
                for path in ("/api/v1/actions", "/api/v1/executions", "/executions")
            ]
    assert [fault_of(answer) for answer in answers] == [None] * 3


@pytest.mark.parametrize("sql", ["select pg_terminate_backend(pid)", "select pg_cancel_backend(pid)"])
async def test_connection_cut_in_mid_query_is_answered_503(api: Api, sql: str) -> None:
    """Locks hold up the statements of real requests, which the administrator of the server then ends."""
    async with serving(api) as call:
        assert (await call.get("/api/v1/limits")).status_code == 200
        own = api.house.session
        async with own.transaction() as tx:
            await tx.fetch("lock table subscription in access exclusive mode")
            for method, path in (("GET", "/api/v1/subscriptions"), ("GET", "/subscriptions")):
                request = asyncio.create_task(call.request(method, path))
                for _ in range(4):
                    while not (waiting := await tx.fetch(WAITING)) and not request.done():
                        await asyncio.sleep(0.01)
                    if request.done():
                        break
                    await tx.fetch(f"{sql} from (select {waiting[0]['pid']} as pid) x")
                    await asyncio.sleep(0.05)
                assert fault_of(await asyncio.wait_for(request, 20)) is None


WAITING = """
select pid from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database() and query like '%subscription%'
"""


def body_of(document: dict[str, Any], method: str, path: str) -> Any:
    operation = document["paths"].get(path, {}).get(method.lower(), {})
    content = operation.get("requestBody", {}).get("content", {}).get("application/json")
    return sample(content["schema"], document["components"]["schemas"]) if content else {}


def sample(schema: dict[str, Any], schemas: dict[str, Any], name: str = "") -> Any:
    if "$ref" in schema:
        return sample(schemas[schema["$ref"].rpartition("/")[2]], schemas, name)
    for several in ("anyOf", "oneOf", "allOf"):
        if several in schema:
            return sample(schema[several][0], schemas, name)
    if "const" in schema:
        return schema["const"]
    if "enum" in schema:
        return schema["enum"][0]
    match schema.get("type"):
        case "object":
            return {
                key: sample(schema["properties"][key], schemas, key) for key in schema.get("required", ())
            }
        case "array":
            return [sample(schema.get("items", {}), schemas, name)] if schema.get("minItems") else []
        case "integer":
            return max(schema.get("minimum", 1), 1)
        case "number":
            return 1.0
        case "boolean":
            return True
    match schema.get("format"):
        case "uuid":
            return ID
        case "date-time":
            return "2099-01-01T00:00:00Z"
    return {
        "url": "https://example.org/hook",
        "action": "shop.count",
        "ref": "shop.count",
        "trigger": "shop.order_placed",
    }.get(name, "x")
