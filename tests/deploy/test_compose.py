"""docker-compose.yml says what Compose, the images and Penstock understand. (Where there is no Docker, no more.)"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from penstock.operate.roles import named
from penstock.settings import Settings

ROOT = Path(__file__).parents[2]
COMPOSE = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
OURS = ("migrate", "roles", "executor", "worker", "api", "gateway")
# The environment that the images document.
POSTGRES = {"POSTGRES_USER", "POSTGRES_PASSWORD", "POSTGRES_DB"}
RABBITMQ = {"RABBITMQ_DEFAULT_USER", "RABBITMQ_DEFAULT_PASS", "RABBITMQ_DEFAULT_VHOST"}


def test_every_part_is_there_with_two_executors_and_two_workers() -> None:
    assert set(SERVICES) == {"postgres", "rabbitmq", *OURS}
    for name in ("executor", "worker"):
        assert SERVICES[name]["deploy"]["replicas"] == 2


@pytest.mark.parametrize("name", OURS)
def test_each_variable_is_a_setting_of_penstock(name: str) -> None:
    fields = {f"PENSTOCK_{field.upper()}" for field in Settings.model_fields}
    variables_set = {
        variable for variable in SERVICES[name]["environment"] if not variable.startswith("ROLE_PASSWORD_")
    }
    assert variables_set <= fields
    assert variables_set >= {"PENSTOCK_DATABASE_URL", "PENSTOCK_BROKER_URL"}


def test_the_images_know_their_variables() -> None:
    assert set(SERVICES["postgres"]["environment"]) == POSTGRES
    assert set(SERVICES["rabbitmq"]["environment"]) == RABBITMQ


def test_the_addresses_name_users_databases_and_vhosts_that_the_servers_make() -> None:
    settings = SERVICES["migrate"]["environment"]
    postgres, rabbitmq = SERVICES["postgres"]["environment"], SERVICES["rabbitmq"]["environment"]
    assert settings["PENSTOCK_DATABASE_URL"] == (
        f"postgresql://{postgres['POSTGRES_USER']}:{postgres['POSTGRES_PASSWORD']}@postgres:5432/{postgres['POSTGRES_DB']}"
    )
    assert settings["PENSTOCK_BROKER_URL"] == (
        f"amqp://{rabbitmq['RABBITMQ_DEFAULT_USER']}:{rabbitmq['RABBITMQ_DEFAULT_PASS']}"
        f"@rabbitmq:5672/{rabbitmq['RABBITMQ_DEFAULT_VHOST']}"
    )


@pytest.mark.parametrize("name", ["postgres", "rabbitmq", "executor", "worker", "api", "gateway"])
def test_each_lasting_service_has_a_health_check(name: str) -> None:
    check = SERVICES[name]["healthcheck"]
    assert check["test"][0] in ("CMD", "CMD-SHELL")
    assert {"interval", "timeout", "retries"} <= set(check)


def test_services_wait_for_their_dependencies() -> None:
    for service in SERVICES.values():
        for needed, how in service.get("depends_on", {}).items():
            if how["condition"] == "service_healthy":
                assert "healthcheck" in SERVICES[needed]
            else:
                assert how["condition"] == "service_completed_successfully"
                assert SERVICES[needed]["restart"] == "no"
    assert set(SERVICES["migrate"]["depends_on"]) == {"postgres"}
    assert (
        set(SERVICES["worker"]["depends_on"])
        == set(SERVICES["executor"]["depends_on"])
        == set(SERVICES["api"]["depends_on"])
        == set(SERVICES["gateway"]["depends_on"])
        == {"roles", "rabbitmq"}
    )
    assert set(SERVICES["roles"]["depends_on"]) == {"migrate"}


@pytest.mark.parametrize(
    ("service", "account"),
    [("executor", "executor"), ("worker", "worker"), ("api", "api"), ("gateway", "worker")],
)
def test_each_service_has_a_role_with_the_password_it_was_made_with(service: str, account: str) -> None:
    role = named("penstock")[account]
    password = SERVICES["roles"]["environment"][f"ROLE_PASSWORD_{account.upper()}"]
    address = SERVICES[service]["environment"]["PENSTOCK_DATABASE_URL"]
    assert address == f"postgresql://{role}:{password}@postgres:5432/penstock"


def test_running_work_may_finish_before_a_container_is_killed() -> None:
    grace = Settings.model_fields["grace"].default
    for name in ("executor", "worker"):
        seconds = re.fullmatch(r"(\d+)s", SERVICES[name]["stop_grace_period"])
        assert seconds is not None
        assert int(seconds[1]) > grace


def test_the_servers_are_open_to_this_machine_alone() -> None:
    ports = [port for service in SERVICES.values() for port in service.get("ports", [])]
    assert ports
    assert all(port.startswith("127.0.0.1:") for port in ports)


def test_kept_data_is_in_a_declared_volume() -> None:
    for name in ("postgres", "rabbitmq"):
        volume = SERVICES[name]["volumes"][0].partition(":")[0]
        assert volume in COMPOSE["volumes"]


def test_the_image_is_locked_and_not_run_by_root() -> None:
    lines = (ROOT / "Dockerfile").read_text().splitlines()
    assert any("--require-hashes -r /source/requirements.txt" in line for line in lines)
    users = [line for line in lines if line.startswith("USER ")]
    assert users == ["USER 10001"]
    assert 'ENTRYPOINT ["penstock"]' in lines


def test_the_image_gets_every_file_that_the_dockerfile_copies() -> None:
    copied = [
        word
        for line in (ROOT / "Dockerfile").read_text().splitlines()
        if line.startswith("COPY ") and "--from" not in line
        for word in line.split()[1:-1]
    ]
    allowed = {
        line.removeprefix("!")
        for line in (ROOT / ".dockerignore").read_text().splitlines()
        if line.startswith("!")
    }
    assert set(copied) == allowed
    assert all((ROOT / name).exists() for name in copied)
