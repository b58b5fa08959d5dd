"""The names of namespaces."""

from __future__ import annotations

from penstock.store.admission import namespaces


def test_that_of_a_child_names_tenant_workflow_task_and_route() -> None:
    plain = namespaces.of_child("acme", "shop.orders", "pay", "shop.charge")
    assert plain == ("acme::shop::orders::pay", "shop.charge")
    routed = namespaces.of_child("acme", "shop.orders", "pay", "shop.charge", "gpu")
    assert routed == ("acme::shop::orders::pay@gpu", "shop.charge")
