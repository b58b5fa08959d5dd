"""An installation with an API, shared by the programs that attack it."""

from __future__ import annotations

from tests.penstock_api.conftest import api, call

__all__ = ["api", "call"]
