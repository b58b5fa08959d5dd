"""The permissions of callers for routes. Each route declares one of the dependencies below. Creating a route without
one fails.

A caller is limited to some tenants, or not. `READ`, `OPERATE` and `DEFINE` admit both: such a route shows or changes
only objects of the caller's tenants (see `ExecutionId` and `Asked`). `*_ALL` admits unlimited callers only, for
objects that belong to all tenants together.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Iterator
from typing import Annotated, Any
from urllib.parse import parse_qsl
from uuid import UUID

import orjson
import structlog
from fastapi import Depends, Path, Query, Request, Response, Security
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute
from fastapi.security import HTTPBearer, SecurityScopes

from penstock.errors import (
    InvalidInput,
    NotAllowed,
    NotAuthenticated,
    NotFound,
    PenstockError,
    TooManyAttempts,
)
from penstock.language.terms.options import did_you_mean
from penstock.language.terms.outside_names import check_tenant
from penstock.operate import access
from penstock.operate.access import ANYBODY, Caller
from penstock.operate.audit import kept
from penstock.store.executions import executions
from penstock.store.session import audited_change
from penstock_api.auth import session_cookie
from penstock_api.backend import Backend, backend_of
from penstock_api.requests.caller_address import address_of

log = structlog.get_logger()

Handler = Callable[[Request], Coroutine[Any, Any, Response]]
KEY_HEADER = "idempotency-key"
PERSON = "user:"
"""The prefix of a caller's name if the caller is a person."""


class Guard(HTTPBearer):
    """The guard of a route. It admits callers with a scope: for at least one tenant, or, with `everywhere`, for all
    tenants."""

    def __init__(self, *, everywhere: bool) -> None:
        super().__init__(
            scheme_name="token", description="A token of `penstock tokens create`.", auto_error=False
        )
        self.everywhere = everywhere

    async def __call__(self, request: Request, scopes: SecurityScopes) -> None:  # type: ignore[override]
        """Authenticate the caller, and store it in the request for the route. Raises NotAuthenticated without a valid
        token or session. Raises NotAllowed if the caller lacks the scope, or is limited to some tenants and the route
        needs all."""
        [scope] = scopes.scopes
        await backend_of(request).look_at_clock()
        caller = await self.find_caller(request)
        request.state.known = caller.name
        request.state.authenticated = caller
        request.state.caller = self.admitted(caller, scope)
        check: Callable[[Request], None] | None = getattr(request.state, "check", None)
        if check is not None:
            check(request)
        change: audited_change.Change | None = getattr(request.state, "change", None)
        if change is not None:
            await _describe(change, request)
            change.by = caller.name

    def admitted(self, caller: Caller, scope: str) -> Caller:
        """Return the caller, narrowed to the tenants for which it has this scope. Raises NotAllowed if there are none,
        or if the caller is limited to some tenants and the route needs all."""
        caller = must_have(caller, scope)
        if self.everywhere and caller.tenants is not None:
            raise NotAllowed(
                f"{caller.name} may only use the tenants {', '.join(sorted(caller.tenants))}, but this "
                "object belongs to all tenants",
                hint="Use a token that is not limited to tenants.",
            )
        return caller

    async def caller_with(self, backend: Backend, token: str | None) -> Caller | None:
        """Return the caller with this token, or None if the token is unknown. If the API is open, return a caller with
        every scope."""
        if backend.settings.api_access == "open":
            return ANYBODY
        return await backend.caller(token) if token is not None and token.startswith(access.PREFIX) else None

    async def find_caller(self, request: Request) -> Caller:
        """Return the caller of a request, whatever its scopes. Raises NotAuthenticated without a valid token or
        session."""
        backend = backend_of(request)
        if backend.settings.api_access == "open":
            return ANYBODY
        token = token_in(request.headers.get("authorization", ""))
        is_token = token is not None
        secret = token if is_token else session_cookie.secret_of(request)
        if secret is None:  # a browser that signed in with a token
            secret = session_cookie.secret_of(request, session_cookie.TOKEN)
            is_token = secret is not None
        if secret is None:
            raise NotAuthenticated(
                "this request has no token",
                hint="Create a token with `penstock tokens create`, and send it: `Authorization: Bearer "
                "pst_...`. Or sign in.",
            )
        request.state.has_secret = True
        # a token is not valid as a session, nor the reverse
        fits = is_token == secret.startswith(access.PREFIX)
        caller = await backend.caller(secret) if fits else None
        if caller is None:
            raise NotAuthenticated(
                "this token or session is unknown, or has expired",
                hint="List the tokens with `penstock tokens list`, or create one with `penstock tokens "
                "create`. Or sign in again.",
            )
        return caller


class AccountGuard(Guard):
    """The guard of the routes of a person's own account. It refuses tokens, which have no account."""

    def admitted(self, caller: Caller, scope: str) -> Caller:
        """Return the caller, as Guard.admitted does. Raises NotFound for a token, which has no account, and NotAllowed
        without the scope."""
        caller = super().admitted(caller, scope)
        if not is_person(caller):
            raise NotFound(
                f"{caller.name} is a token and not a user, so it has no account page",
                hint="Sign in with a name and a password. To create a user: `penstock users create NAME`.",
            )
        return caller


def is_person(caller: Caller) -> bool:
    """Return whether a caller is a person with a session."""
    return caller.name.startswith(PERSON)


def still_lets_in(request: Request, guard: Any) -> Callable[[], Awaitable[None]]:
    """Return a function for a stream to call repeatedly. That function raises NotAuthenticated or NotAllowed once the
    caller is no longer admitted, or has other tenants."""
    [scope] = guard.scopes
    lets_in: Guard = guard.dependency
    tenants = request.state.caller.tenants

    async def look() -> None:
        caller = lets_in.admitted(await lets_in.find_caller(request), scope)
        if caller.tenants != tenants:
            raise NotAllowed("the tenants of this caller have changed", hint="Connect again.")

    return look


def token_in(authorization: str) -> str | None:
    """Return the bearer token of this header, or None. HTTPBearer itself would create a model for each request."""
    scheme, _, credentials = authorization.partition(" ")
    return credentials.strip() if scheme.lower() == "bearer" and credentials else None


def must_have(caller: Caller, scope: str) -> Caller:
    """Return the caller, narrowed to the tenants for which it has this scope. Raises NotAllowed if there are none."""
    if not caller.has(scope):
        raise NotAllowed(
            f"{caller.name} may not do this: it lacks the scope {scope!r}",
            hint=f"Create a token with this scope (penstock tokens create NAME --scope {scope}), or give the "
            "user a role with this scope.",
        )
    return caller.within(scope)


_SOME, _ALL = Guard(everywhere=False), Guard(everywhere=True)
_SUBMIT = Guard(everywhere=False)
_ACCOUNT = AccountGuard(everywhere=False)
_OWN = Guard(everywhere=False)
READ = Security(_SOME, scopes=[access.READ])
OPERATE = Security(_SOME, scopes=[access.OPERATE])
DEFINE = Security(_SOME, scopes=[access.DEFINE])
START = Security(_SUBMIT, scopes=[access.START])
PUBLISH = Security(_SUBMIT, scopes=[access.PUBLISH])
"""The guards of starts and events. The audit leaves them out, as they are frequent and stored with their caller."""
WORK = Security(_SUBMIT, scopes=[access.WORK])
"""The guard of workers that call a gateway. The audit leaves their calls out, as the history has what they do."""
ANSWER = Security(_SOME, scopes=[access.ANSWER])
ACCOUNT = Security(_ACCOUNT, scopes=[access.READ])
"""The guard of a person's own account. Each role has the scope; unlike with `READ`, a change is audited."""
READ_OWN = Security(_OWN, scopes=[access.READ])
"""The guard of what a caller that reads keeps for itself. Unlike with `READ`, a change is audited."""
READ_ALL = Security(_ALL, scopes=[access.READ])
OPERATE_ALL = Security(_ALL, scopes=[access.OPERATE])
DEFINE_ALL = Security(_ALL, scopes=[access.DEFINE])
ADMIN_ALL = Security(_ALL, scopes=[access.ADMIN])


class GuardedRoute(APIRoute):
    """A route that declares its permitted callers. Raises TypeError if it declares none.

    A change is audited in the transaction that makes it, with the caller, the values and the reason: the `reason` of the
    body, or the header `X-Reason`. A refusal is audited too.
    """

    def __init__(self, path: str, endpoint: Callable[..., Any], **options: Any) -> None:
        guards = [depends for depends in options["dependencies"] if isinstance(depends.dependency, Guard)]
        if len(guards) != 1:
            raise TypeError(f"{path} does not say who may call it: dependencies=[READ], or another")
        self.guard: Guard = guards[0].dependency
        [self.scope] = guards[0].scopes
        self._changes = guards[0] not in (READ, READ_ALL, START, PUBLISH, WORK)
        super().__init__(path, endpoint, **options)

    def get_route_handler(self) -> Handler:
        handle = super().get_route_handler()
        if self.include_in_schema:
            handle = only_known(self, handle)
        handle = self._with_refusals(handle)
        if not self._changes or self.methods == {"GET"}:
            return handle

        async def noted(request: Request) -> Response:
            change = audited_change.Change(None, self.unique_id, request.url.path)
            request.state.change = change
            with audited_change.begun(change):
                response = await handle(request)
            if not change.noted:
                async with backend_of(request).pool.session() as session:
                    await audited_change.note(session, change, audited_change.UNCHANGED)
            return response

        return noted

    def _with_refusals(self, handle: Handler) -> Handler:
        async def refusing(request: Request) -> Response:
            try:
                return await handle(request)
            except (NotAllowed, NotAuthenticated, TooManyAttempts) as refused:
                name = getattr(request.state, "known", None)
                if name is None and not getattr(request.state, "has_secret", False):
                    raise  # a browser that has not signed in yet, or a port scanner
                with audited_change.apart():  # the audit row of the refusal is a separate change
                    await note_refusal(
                        backend_of(request),
                        name,
                        address_of(request),
                        self.unique_id,
                        request.url.path,
                        refused,
                    )
                raise

        return refusing


async def note_refusal(
    backend: Backend, name: str | None, address: str, operation: str, path: str, refused: PenstockError
) -> None:
    """Write the refusal of a call into the audit, or into the log of a gateway alone. `name` is that of the caller."""
    if backend.audits:
        await backend.refused_calls.note(name, address, operation, path, refused.message)
    else:
        log.warning("gateway.refused", by=name, address=address, reason=refused.message)


def only_known(route: APIRoute, handle: Handler) -> Handler:
    """Refuse query parameters and an idempotency key that the route does not take, instead of ignoring them. A caller
    that is not admitted gets only that refusal."""
    parts = list(_parts(route.dependant))
    names = sorted(field.alias for part in parts for field in part.query_params)
    keyed = any(field.alias == KEY_HEADER for part in parts for field in part.header_params)

    def check(request: Request) -> None:
        for name in request.query_params:
            if name not in names:
                raise InvalidInput(f"there is no query parameter {name!r}", hint=did_you_mean(name, names))
        if KEY_HEADER in request.headers and not keyed:
            raise InvalidInput(
                "this route does not accept the header idempotency-key",
                hint="Send the request without the header.",
            )

    async def checked(request: Request) -> Response:
        request.state.check = check
        return await handle(request)

    return checked


def _parts(dependant: Dependant) -> Iterator[Dependant]:
    yield dependant
    for part in dependant.dependencies:
        yield from _parts(part)


async def _describe(change: audited_change.Change, request: Request) -> None:
    """Set the reason and the values of a change from its body. A body that cannot be parsed is left to the route."""
    body = await request.body()
    try:
        document = orjson.loads(body)
    except ValueError:  # the body is that of a form
        document = dict(parse_qsl(body.decode("utf-8", "replace")))
    fields = document if isinstance(document, dict) else {}
    reason = fields.pop("reason", None)
    if not isinstance(reason, str):
        reason = request.headers.get("x-reason")
    change.reason = reason
    change.details = kept({**request.query_params, **fields})


async def _caller(request: Request) -> Caller:
    caller: Caller = request.state.caller
    return caller


Asked = Annotated[Caller, Depends(_caller)]
"""The dependency with the caller of the request."""


def own(caller: Caller, tenant: str) -> str:
    """Return the tenant if the caller may see it. Raises InvalidInput for a text that is not a valid tenant name, and
    NotAllowed for a tenant that the caller may not see."""
    check_tenant(tenant)
    if not caller.sees(tenant):
        raise NotAllowed(
            f"{caller.name} may not use tenant {tenant!r}",
            hint=f"It may use: {', '.join(sorted(caller.tenants or ()))}.",
        )
    return tenant


async def _tenants(
    caller: Asked, tenant: Annotated[str | None, Query(description="Only objects of this tenant.")] = None
) -> frozenset[str] | None:
    return caller.tenants if tenant is None else frozenset((own(caller, tenant),))


Tenants = Annotated[frozenset[str] | None, Depends(_tenants)]
"""The dependency with the tenants of a list: the requested one, or else all of the caller's. None means all tenants."""


async def _seen(
    id: Annotated[UUID, Path(description="The id of an execution.")], caller: Asked, request: Request
) -> UUID:
    if caller.tenants is not None:
        async with backend_of(request).pool.session() as session:
            tenant = await executions.tenant(session, id)
        if tenant is None or not caller.within(access.READ).sees(tenant):
            raise NotFound(
                f"no execution {id}",
                hint="Check the id. Or the execution belongs to another tenant, or was deleted after its retention.",
            )
        # The caller may see the execution, so the error may say that the change is not permitted.
        own(caller, tenant)
    return id


ExecutionId = Annotated[UUID, Depends(_seen)]
"""The dependency with the id in the path, of an execution that the caller may see."""
