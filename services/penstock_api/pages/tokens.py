"""The page of tokens, with which programs call the API."""

from __future__ import annotations

from dataclasses import replace

from fastapi import APIRouter, Request, Response

from penstock.operate.access import ROLES
from penstock.store.access import tokens
from penstock.store.session.noted_clock import noted
from penstock_api.auth.access import ADMIN_ALL
from penstock_api.backend import Db
from penstock_api.models import operations as models
from penstock_api.pages.page import PageRouter, page
from penstock_api.pages.request_form import request_fields
from penstock_api.pages.schema_form import Field

router: APIRouter = PageRouter("tokens")

DAY_S = 86_400
LIFETIMES = (
    (str(90 * DAY_S), "90 days"),
    (str(DAY_S), "a day"),
    (str(7 * DAY_S), "a week"),
    (str(30 * DAY_S), "30 days"),
    (str(365 * DAY_S), "a year"),
    ("null", "never"),
)
"""The lifetimes of a token to choose from, as JSON and for people. The first one is the default."""
SCOPES = Field(
    name="other_scopes",
    label="Other scopes",
    at='["scopes"]',
    kind="words",
    required=False,
    says="Additional scopes, beyond those of the roles. The scope start:shop.charge lets the token start the action "
    "shop.charge. The token of a worker needs the scope “work”.",
)


@router.get("/tokens", dependencies=[ADMIN_ALL])
async def show(request: Request, session: Db) -> Response:
    """Show the tokens without their secrets, with forms to create, rotate and revoke them."""
    return page(
        request,
        "tokens.html",
        rows=await tokens.listed(session),
        create=_fields(),
        now=noted(),
        every=5,
    )


def _fields() -> list[Field]:
    """Return the fields of a new token: the name first, and a choice of lifetimes instead of seconds."""
    form_fields = request_fields(models.NewToken, choices={"scopes": tuple(ROLES)})
    by_name = {field.name: field for field in form_fields}
    expires = replace(
        by_name["seconds"],
        label="Expires after",
        kind="choice",
        choices=LIFETIMES,
        value=LIFETIMES[0][0],
        has_default=True,
        says="",
    )
    # Neither is required by itself: a token needs a role or another scope.
    scopes = replace(by_name["scopes"], label="Roles", says="", required=False)
    return [by_name["name"], scopes, SCOPES, by_name["tenants"], by_name["routes"], by_name["packs"], expires]
