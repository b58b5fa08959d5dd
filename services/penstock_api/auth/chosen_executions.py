"""The filter of a list or of a bulk command, under the rights of the caller."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from penstock.operate import list_filters
from penstock.operate.access import Caller
from penstock.store.executions.execution_list import ExecutionFilter
from penstock_api.auth.access import own


def chosen_executions(filters: Mapping[str, Any], caller: Caller) -> ExecutionFilter:
    """Return the filter that these filters describe, narrowed to the tenants of the caller. Raises InvalidInput, NotAllowed."""
    execution_filter = list_filters.execution_filter(filters)
    tenant = execution_filter.tenant
    if tenant is not None:
        own(caller, tenant)
    elif caller.tenants is not None and len(caller.tenants) == 1:
        [tenant] = caller.tenants
    tenants = caller.tenants if tenant is None else frozenset((tenant,))
    return replace(execution_filter, tenant=tenant, tenants=tenants)
