"""Ports that are chosen are held."""

from __future__ import annotations

import socket

import pytest

from penstock.client import local_installation
from penstock.errors import ConfigurationError
from penstock.service.ports import listening
from penstock.settings import Settings


def test_services_that_start_together_get_different_ports() -> None:
    first, one = local_installation.with_an_address(Settings())
    second, two = local_installation.with_an_address(Settings())
    with one, two:
        assert first.api_port != second.api_port
        for settings in (first, second):
            socket.create_connection(("127.0.0.1", settings.api_port), timeout=5).close()


def test_a_port_that_was_asked_for_is_not_replaced() -> None:
    with listening("127.0.0.1", 0) as held:
        port = held.getsockname()[1]
        with pytest.raises(
            ConfigurationError, match=f"nothing can listen on port {port} of 127.0.0.1"
        ) as refused:
            local_installation.with_an_address(Settings(api_port=port))
        assert "PENSTOCK_API_PORT" in str(refused.value.hint)
