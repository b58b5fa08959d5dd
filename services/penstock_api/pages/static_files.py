"""Style sheets and scripts. Their address changes when one of them changes, so that a browser requests each once."""

from __future__ import annotations

import hashlib
from pathlib import Path

from fastapi import APIRouter, Response

from penstock.errors import NotFound
from penstock_api.requests.public_path import base

router = APIRouter(include_in_schema=False)

KINDS = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
FILES = {
    file.name: file.read_bytes()
    for file in sorted((Path(__file__).parent / "static").iterdir())
    if file.suffix in KINDS
}
VERSION = hashlib.sha256(b"\0".join(FILES.values())).hexdigest()[:12]
FOREVER = {"cache-control": "public, max-age=31536000, immutable"}


def address(name: str) -> str:
    """Return the address of a static file. Raises KeyError if there is no such file."""
    assert FILES[name]
    return f"{base()}/static/{VERSION}/{name}"


@router.get("/static/{version}/{name}")
async def static(version: str, name: str) -> Response:
    if name not in FILES:
        raise NotFound(f"no file {name}", hint="Load the page again.")
    headers = FOREVER if version == VERSION else {}
    return Response(FILES[name], media_type=KINDS[Path(name).suffix], headers=headers)
