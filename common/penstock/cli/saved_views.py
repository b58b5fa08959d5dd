"""The commands of saved views: list, show, save, delete."""

from __future__ import annotations

from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any

import typer

from penstock.cli import name_completion
from penstock.cli.execution_filter import choosing_filters
from penstock.cli.output import Json, fields, json_line, listing, out
from penstock.cli.server import by_either, read
from penstock.language.terms.local_access import LOCAL_ACCESS
from penstock.operate.list_filters import as_texts

if TYPE_CHECKING:
    from penstock.cli.server import AnyClient
    from penstock.store.access.saved_views import SavedView

app = typer.Typer(
    help="List, save and delete views. A view is a named filter of executions.", no_args_is_help=True
)
Name = Annotated[
    str,
    typer.Argument(help="The name of the view, or its id.", autocompletion=name_completion.views),
]
By = Annotated[
    str,
    typer.Option(
        help="The owner of the views: user:NAME or token:NAME for a caller of the API. By default `local access`, which also "
        "owns the views of pages without a sign-in. Not with --server."
    ),
]


@app.command(name="list")
def list_views(by: By = LOCAL_ACCESS, json: Json = False) -> None:
    """List your views, and the shared ones."""
    listing(
        ["name", "filters", "description", "owner", "shared", "changed"],
        read(lambda client: client.views.all(by=by)),
        lambda row: (
            row.name,
            _filters(row.filters),
            row.description,
            row.owner,
            "yes" if row.shared else "no",
            row.changed_at,
        ),
        json=json,
        empty="No views yet. Save one with: penstock views save NAME --status failed --since 24h",
    )


@app.command()
def show(name: Name, by: By = LOCAL_ACCESS, json: Json = False) -> None:
    """Show a view of this name: your own, or a shared one if you have none."""
    view = read(lambda client: client.views.get(name, by=by))
    if json:
        json_line(view)
        return
    fields(
        {
            "view": view.id,
            "name": view.name,
            "description": view.description,
            "filters": _filters(view.filters),
            "owner": view.owner,
            "shared": "yes" if view.shared else "no",
            "version": view.version,
            "changed": view.changed_at,
            "changed by": view.changed_by,
        }
    )


@app.command()
@choosing_filters
def save(
    name: Annotated[str, typer.Argument(help="The name of the view.")],
    filters: dict[str, Any],
    description: Annotated[str | None, typer.Option(help="The purpose of the view.")] = None,
    shared: Annotated[
        bool, typer.Option("--shared", help="Show the view to all callers that may read its tenant.")
    ] = False,
    replace: Annotated[
        bool, typer.Option("--replace", help="Change the view of this name, if there is one.")
    ] = False,
    by: By = LOCAL_ACCESS,
    json: Json = False,
) -> None:
    """Save the filters of these options as a view of the list of executions."""

    view = by_either(
        lambda client: client.views.create(
            name, filters, by=by, description=description, shared=shared, replace=replace
        ),
        publishes=False,
    )
    if json:
        json_line(view)
    else:
        out.print(f"Saved. See it with: penstock executions --view {quote(view.name)}", highlight=False)


@app.command()
def delete(name: Name, by: By = LOCAL_ACCESS, json: Json = False) -> None:
    """Delete a view: yours of this name, or a shared one."""

    async def work(client: AnyClient) -> SavedView:
        view = await client.views.get(name, by=by)
        await client.views.delete(view.id, by=by)
        return view

    view = by_either(work, publishes=False)
    if json:
        json_line({"id": view.id, "name": view.name, "deleted": True})
    else:
        out.print(f"The view {view.name} is deleted.", highlight=False)


def _filters(filters: dict[str, Any]) -> str:
    return " ".join(f"{name}={text}" for name, text in as_texts(filters).items())


def add_to(parent: typer.Typer) -> None:
    parent.add_typer(app, name="views")
