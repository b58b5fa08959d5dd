"""The page of users, their roles and their sessions."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response

from penstock.operate.access import ROLES
from penstock.store.access import people
from penstock_api.auth.access import ADMIN_ALL
from penstock_api.backend import Db
from penstock_api.models import users as models
from penstock_api.pages.page import PageRouter, page
from penstock_api.pages.request_form import request_fields

router: APIRouter = PageRouter("users")


@router.get("/users", dependencies=[ADMIN_ALL])
async def show(request: Request, session: Db) -> Response:
    """Show the users, with forms to create, change and delete them, and the rights of each role."""
    return page(
        request,
        "users.html",
        rows=await people.listed(session),
        create=request_fields(models.NewUser),
        roles=request_fields(models.UserRoles),
        password=request_fields(models.Password),
        rights=ROLES,
        every=5,
    )
