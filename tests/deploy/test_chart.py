"""The Helm chart: Kubernetes takes what it renders, and it names what exists."""

from __future__ import annotations

import json
import re
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import kubernetes_validate  # type: ignore[import-untyped]
import pytest
import typer
import yaml

from penstock.cli import app
from penstock.service.environment import load
from penstock.settings import Settings
from tests.deploy.chart import CHART, NEWEST, ROOT, Document, of_kind, pods, refused, rendered
from tests.deploy.custom_resources import as_read
from tests.deploy.restricted import violations
from tests.servers import choose

OLDEST = "1.29"
CASES = sorted((CHART / "ci").glob("*.yaml"))
DEFAULTS = yaml.safe_load((CHART / "values.yaml").read_text())
SCHEMA = json.loads((CHART / "values.schema.json").read_text())
PAGE = ROOT / "docs/how-to/kubernetes.md"
GIVEN = {
    *(
        "database_url",
        "broker_url",
        "secrets_key",
        "oidc_client_secret",
        "database_read_url",
        "runner_id",
        "name",
        "host",
        "port",
        "api_host",
        "api_port",
        "wait",
    ),
    *("grace", "modules", "routes", "labels", "concurrency"),
}
"""Settings that the chart gives by itself, or by a value of their own."""
SECRETS = {
    "database-url": "postgresql://penstock:secret@db.example/penstock",
    "broker-url": "amqp://penstock:secret@mq.example/penstock",
    "secrets-key": "MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=",
}


@pytest.fixture(scope="module", params=[None, *CASES], ids=lambda file: file.stem if file else "default")
def case(request: pytest.FixtureRequest) -> list[Document]:
    return rendered(*(["--values", str(request.param)] if request.param else []))


@pytest.mark.parametrize("file", CASES, ids=lambda file: file.stem)
def test_helm_has_nothing_against_it(file: Path) -> None:
    lint = [choose.helm_program(), "lint", "--strict", str(CHART), "--values", str(file)]
    result = subprocess.run(lint, capture_output=True, text=True, timeout=60)
    assert result.returncode == 0, result.stdout + result.stderr


@pytest.mark.parametrize("version", [OLDEST, NEWEST])
def test_kubernetes_would_take_it(case: list[Document], version: str) -> None:
    for document in case:
        if document["apiVersion"].partition("/")[0] not in ("keda.sh", "monitoring.coreos.com"):
            kubernetes_validate.validate(document, version, strict=True)


def test_keda_and_the_prometheus_operator_would_take_theirs() -> None:
    kinds = ("ScaledObject", "PodMonitor", "PrometheusRule")
    theirs = [resource for file in CASES for resource in of_kind(rendered("--values", str(file)), *kinds)]
    assert {resource["kind"] for resource in theirs} == set(kinds)
    assert as_read(theirs) == theirs


def test_pods_keep_to_the_restricted_standard(case: list[Document]) -> None:
    assert [violation for pod in pods(case) for violation in violations(pod)] == []


def test_pods_run_existing_commands_and_options(case: list[Document]) -> None:
    commands = typer.main.get_command(app).commands  # type: ignore[attr-defined]
    for pod in pods(case):
        [container] = pod["containers"]
        command, *arguments = container["args"]
        options = {option for one in commands[command].params for option in one.opts}
        assert {one for one in arguments if one.startswith("--")} <= options


def test_services_take_their_settings(case: list[Document], monkeypatch: pytest.MonkeyPatch) -> None:
    for pod in pods(case):
        [container] = pod["containers"]
        with monkeypatch.context() as environment:
            for name, value in variables(container, case).items():
                environment.setenv(name, value)
            settings = load()
        assert pod.get("terminationGracePeriodSeconds", settings.grace + 1) > settings.grace
        ports = {port["name"]: port["containerPort"] for port in container.get("ports", [])}
        if ports:
            assert (ports["health"], settings.host) == (settings.port, "0.0.0.0")
        assert ("http" in ports) == (container["args"][0] in ("api", "gateway"))
        assert ports.get("http", settings.api_port) == settings.api_port
        for probe in ("startupProbe", "livenessProbe", "readinessProbe") if ports else ():
            check = container[probe]["httpGet"]
            assert (check["port"], check["path"]) == ("health", "/ready" if probe[0] == "r" else "/live")


def variables(container: Document, documents: list[Document]) -> dict[str, str]:
    """Return the variables of the container, with every secret that it names."""
    maps = {
        config_map["metadata"]["name"]: config_map["data"] for config_map in of_kind(documents, "ConfigMap")
    }
    values: dict[str, str] = {}
    for source in container.get("envFrom", []):
        if "configMapRef" in source:
            values |= maps[source["configMapRef"]["name"]]
    for entry in container["env"]:
        if "value" in entry:
            values[entry["name"]] = entry["value"]
        elif "secretKeyRef" in entry["valueFrom"]:
            of_secret = entry["valueFrom"]["secretKeyRef"]
            if of_secret["key"] in SECRETS or not of_secret.get("optional"):
                values[entry["name"]] = SECRETS[of_secret["key"]]
    return values


def test_selected_scaled_and_scraped_objects_exist(case: list[Document]) -> None:
    deployments = {deployment["metadata"]["name"]: deployment for deployment in of_kind(case, "Deployment")}
    labels = {
        name: deployment["spec"]["template"]["metadata"]["labels"] for name, deployment in deployments.items()
    }

    def chosen(selector: dict[str, str]) -> set[str]:
        return {name for name, has in labels.items() if selector.items() <= has.items()}

    for name, deployment in deployments.items():
        assert chosen(deployment["spec"]["selector"]["matchLabels"]) == {name}
        for spread in deployment["spec"]["template"]["spec"]["topologySpreadConstraints"]:
            assert chosen(spread["labelSelector"]["matchLabels"]) == {name}
    budgets = [
        chosen(deployment["spec"]["selector"]["matchLabels"])
        for deployment in of_kind(case, "PodDisruptionBudget")
    ]
    assert sorted(budgets, key=str) == sorted(({name} for name in deployments), key=str)
    for service in of_kind(case, "Service"):
        assert chosen(service["spec"]["selector"]) == {service["metadata"]["name"]}
        assert service["spec"]["ports"][0]["targetPort"] == "http"
    for monitor in of_kind(case, "PodMonitor"):
        assert chosen(monitor["spec"]["selector"]["matchLabels"]) == set(deployments)
    scaled = [
        deployment["spec"]["scaleTargetRef"]["name"]
        for deployment in of_kind(case, "ScaledObject", "HorizontalPodAutoscaler")
    ]
    assert {name for name, deployment in deployments.items() if "replicas" not in deployment["spec"]} == set(
        scaled
    )
    assert len(scaled) == len(set(scaled)), "who scales a deployment is one"
    accounts = {deployment["metadata"]["name"] for deployment in of_kind(case, "ServiceAccount")} | {"shop"}
    assert {pod["serviceAccountName"] for pod in pods(case) if "serviceAccountName" in pod} <= accounts


def test_objects_that_a_hook_needs_exist_before_it(case: list[Document]) -> None:
    """The job comes before the release, and so before its config map and its secret."""
    hooks = [document for document in case if "helm.sh/hook" in document["metadata"].get("annotations", {})]
    ours = {document["metadata"]["name"] for document in of_kind(case, "Secret")}
    for job in of_kind(hooks, "Job"):
        [container] = job["spec"]["template"]["spec"]["containers"]
        names = {e["valueFrom"]["secretKeyRef"]["name"] for e in container["env"] if "valueFrom" in e}
        assert "envFrom" not in container
        assert names & ours <= {document["metadata"]["name"] for document in of_kind(hooks, "Secret")}
    assert of_kind(hooks, "Job") == of_kind(case, "Job")


def test_only_given_values_make_a_secret() -> None:
    assert of_kind(rendered(), "Secret") == []
    secrets = of_kind(rendered("--values", str(CHART / "ci/everything.yaml")), "Secret")
    whole = {secret["metadata"]["name"]: set(secret["stringData"]) for secret in secrets}
    assert whole == {"shop": set(SECRETS), "penstock-migrate": {"database-url"}}


def test_gateway_serves_workers_alone_with_their_role() -> None:
    assert "gateway" not in {pod["containers"][0]["args"][0] for pod in pods(rendered())}
    documents = rendered("--set", "gateway.enabled=true", "--set", "secret.services.gateway=penstock-worker")
    [container] = [
        pod["containers"][0] for pod in pods(documents) if pod["containers"][0]["name"] == "gateway"
    ]
    assert container["args"] == ["gateway", "--wait", "60s"]
    environment = {entry["name"]: entry for entry in container["env"]}
    secret = environment["PENSTOCK_DATABASE_URL"]["valueFrom"]["secretKeyRef"]
    assert (secret["name"], environment["PENSTOCK_API_HOST"]["value"]) == ("penstock-worker", "0.0.0.0")
    assert {"penstock-api", "penstock-gateway"} == {
        service["metadata"]["name"] for service in of_kind(documents, "Service")
    }
    policies = {policy["metadata"]["name"] for policy in of_kind(documents, "NetworkPolicy")}
    assert policies == {"penstock", "penstock-api", "penstock-gateway"}


def test_alerts_and_dashboard_are_the_ones_of_deploy() -> None:
    documents = rendered("--values", str(CHART / "ci/everything.yaml"))
    [rule] = of_kind(documents, "PrometheusRule")
    assert rule["spec"] == yaml.safe_load((ROOT / "deploy/prometheus/alerts.yml").read_text())
    [page] = [
        config_map["data"]["penstock.json"]
        for config_map in of_kind(documents, "ConfigMap")
        if "dashboard" in str(config_map["metadata"])
    ]
    assert json.loads(page) == json.loads((ROOT / "deploy/grafana/penstock.json").read_text())


def test_the_chart_has_the_version_of_the_project() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert chart["version"] == chart["appVersion"] == project["version"]


def test_settings_that_may_be_given_are_settings() -> None:
    names = {f"PENSTOCK_{name.upper()}" for name in set(Settings.model_fields) - GIVEN}
    allowed = set(SCHEMA["properties"]["settings"]["propertyNames"]["enum"])
    assert allowed == names, "values.schema.json names each setting that the chart does not give by itself"


def test_every_value_has_a_default() -> None:
    assert set(unset(SCHEMA, DEFAULTS)) == set()


def unset(schema: Any, values: Any, path: str = "") -> Iterator[str]:
    """Return the keys that the schema has and values.yaml has not. Parts of pods and groups say only what differs."""
    if "$ref" in schema:
        schema = SCHEMA["definitions"][schema["$ref"].rpartition("/")[2]]
    for name, inner in schema.get("properties", {}).items():
        where = f"{path}.{name}"
        if where in (".global", ".executor.pods", ".api.pods", ".gateway.pods", ".worker.pods"):
            continue
        if name not in values:
            yield where
        elif isinstance(values[name], dict):
            yield from unset(inner, values[name], where)


WRONG = {
    "wrong=1": "wrong is not allowed",
    "api.enabled=maybe": "api.enabled",
    "image.pullPolicy=Sometimes": "image.pullPolicy must be one of",
    "settings.PENSTOCK_LOGLEVEL=debug": "PENSTOCK_LOGLEVEL",
    "settings.PENSTOCK_DATABASE_URL=postgresql://x": "PENSTOCK_DATABASE_URL",
    "worker.scale.by=memory": "worker.scale.by must be one of",
    "executor.scale.by=work": "executor.scale.by must be one of",
    "workers.Gpu.routes={gpu}": "Gpu",
    "workers.gpu.replicas=2": "routes is required",
    "workers.gpu.routes=gpu": "Expected: array",
    "worker.concurrency=0": "worker.concurrency",
    "secret.create=true": "secret.databaseUrl is empty",
    "secret.brokerUrl=amqp://mq": "secret.create is false",
    "keda.prometheus=prometheus": "keda.prometheus",
    "grace=0": "grace",
}


@pytest.mark.parametrize("given", WRONG)
def test_a_wrong_value_is_refused_by_its_name(given: str) -> None:
    assert WRONG[given] in refused("--set", given)


SHOWN = re.findall(r'^```yaml title="values.yaml"\n(.*?)^```', PAGE.read_text(), re.M | re.S)


@pytest.mark.parametrize("values", SHOWN)
def test_the_page_shows_values_that_are_taken(values: str, tmp_path: Path) -> None:
    file = tmp_path / "values.yaml"
    file.write_text(values)
    assert of_kind(rendered("--values", str(file)), "Deployment")


def test_a_group_of_workers_sets_only_its_differences() -> None:
    documents = rendered(
        "--values", str(CHART / "ci/groups.yaml"), "--set", "worker.pods.priorityClassName=low"
    )
    workers = [
        deployment
        for deployment in of_kind(documents, "Deployment")
        if "worker" in deployment["metadata"]["name"]
    ]
    names = (
        "PENSTOCK_ROUTES",
        "PENSTOCK_MODULES",
        "PENSTOCK_LABELS",
        "PENSTOCK_CONCURRENCY",
        "PENSTOCK_GRACE",
    )
    groups = {}
    for deployment in workers:
        pod = deployment["spec"]["template"]["spec"]
        env = variables(pod["containers"][0], documents)
        groups[deployment["metadata"]["name"]] = (
            deployment["spec"].get("replicas"),
            *(env[name] for name in names),
        )
        assert pod["priorityClassName"] == "low"
        assert pod["containers"][0]["resources"]["requests"] == DEFAULTS["pods"]["resources"]["requests"]
    assert groups == {
        "penstock-worker-default": (2, "default", "shop,shop.mail", "", "32", "120"),
        "penstock-worker-gpu": (0, "gpu", "", "gpu=a100,zone=eu", "1", "120"),
        "penstock-worker-packs": (None, "packs", "/packs", "", "32", "120"),
    }


def test_the_first_group_of_workers_can_be_left_out() -> None:
    documents = rendered("--set", "workers.default=null", "--set", "workers.mail.routes={mail}")
    names = [deployment["metadata"]["name"] for deployment in of_kind(documents, "Deployment")]
    assert sorted(names) == ["penstock-api", "penstock-executor", "penstock-worker-mail"]
