from __future__ import annotations

import base64
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from penstock.errors import ConfigurationError
from penstock_worker.executors.kubernetes import kubernetes_cluster


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    """A certificate and its key, as PEM."""
    folder = tmp_path_factory.mktemp("tls")
    command = (
        "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 1 -subj /CN=test"
    )
    subprocess.run(
        [*command.split(), "-keyout", folder / "key", "-out", folder / "crt"], check=True, capture_output=True
    )
    return (folder / "crt").read_text(), (folder / "key").read_text()


def _config(path: Path, user: dict[str, Any], server: str = "http://127.0.0.1:1", **more: Any) -> Path:
    config = {
        "current-context": "one",
        "contexts": [
            {"name": "one", "context": {"cluster": "c", "user": "u", "namespace": "shop"}},
            {"name": "two", "context": {"cluster": "c", "user": "u"}},
        ],
        "clusters": [{"name": "c", "cluster": {"server": server, **more}}],
        "users": [{"name": "u", "user": user}],
    }
    path.write_text(yaml.safe_dump(config))
    return path


def test_a_kubeconfig_gives_server_namespace_and_token(tmp_path: Path) -> None:
    path = _config(tmp_path / "config", {"token": "t"}, server="http://127.0.0.1:1/")
    found = kubernetes_cluster.from_kubeconfig(path)
    assert (found.server, found.namespace) == ("http://127.0.0.1:1", "shop")
    assert found.authorization() == {"Authorization": "Bearer t"}
    assert kubernetes_cluster.from_kubeconfig(path, "two").namespace == "default"


def test_a_token_in_a_file_is_read_anew_each_time(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("first\n")
    found = kubernetes_cluster.from_kubeconfig(_config(tmp_path / "config", {"tokenFile": "token"}))
    assert found.authorization() == {"Authorization": "Bearer first"}
    (tmp_path / "token").write_text("second\n")
    assert found.authorization() == {"Authorization": "Bearer second"}


def test_certificates_are_understood_inline_and_as_files(
    tmp_path: Path, certificate: tuple[str, str]
) -> None:
    crt, key = certificate
    encoded = [base64.b64encode(each.encode()).decode() for each in certificate]
    inline = _config(
        tmp_path / "inline",
        {"client-certificate-data": encoded[0], "client-key-data": encoded[1]},
        server="https://127.0.0.1:1",
        **{"certificate-authority-data": encoded[0]},
    )
    (tmp_path / "crt").write_text(crt)
    (tmp_path / "key").write_text(key)
    files = _config(
        tmp_path / "files",
        {"client-certificate": "crt", "client-key": "key"},
        server="https://127.0.0.1:1",
        **{"certificate-authority": "crt"},
    )
    for path in (inline, files):
        found = kubernetes_cluster.from_kubeconfig(path)
        assert found.tls is not None
        assert [each["subject"] for each in found.tls.get_ca_certs()] == [((("commonName", "test"),),)]
        assert found.authorization() == {}


@pytest.mark.parametrize("user", [{"exec": {"command": "aws"}}, {"username": "u", "password": "p"}])
def test_unsupported_logins_are_refused_with_the_remedy(tmp_path: Path, user: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError, match="not supported") as refused:
        kubernetes_cluster.from_kubeconfig(_config(tmp_path / "config", user))
    assert "service account" in str(refused.value.hint)


@pytest.mark.parametrize(
    "content", ["", "{", "contexts: []", "current-context: one\ncontexts: [{name: two}]"]
)
def test_a_file_that_is_no_kubeconfig_is_refused(tmp_path: Path, content: str) -> None:
    path = tmp_path / "config"
    path.write_text(content)
    with pytest.raises(ConfigurationError, match="is not a valid kubeconfig"):
        kubernetes_cluster.from_kubeconfig(path)


def test_inside_a_pod_the_service_account_is_used(
    tmp_path: Path, certificate: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, content in (("token", "t\n"), ("namespace", "shop"), ("ca.crt", certificate[0])):
        (tmp_path / name).write_text(content)
    monkeypatch.setattr(kubernetes_cluster, "SERVICE_ACCOUNT", tmp_path)
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "fd00::1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "6443")
    found = kubernetes_cluster.find(None)
    assert (found.server, found.namespace) == ("https://[fd00::1]:6443", "shop")
    assert found.authorization() == {"Authorization": "Bearer t"}


def test_without_a_cluster_the_error_names_the_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))
    with pytest.raises(ConfigurationError, match="finds no cluster"):
        kubernetes_cluster.find(None)
