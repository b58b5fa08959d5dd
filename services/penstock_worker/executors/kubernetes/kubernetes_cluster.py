"""The address of the Kubernetes API and its credentials: from inside a pod, or from a kubeconfig file."""

from __future__ import annotations

import base64
import os
import ssl
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from penstock.errors import ConfigurationError

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")


@dataclass(frozen=True, slots=True)
class Cluster:
    """The connection data of one API server."""

    server: str
    namespace: str
    tls: ssl.SSLContext | None = None
    token: str | None = None
    token_file: Path | None = None
    """The file with the token. The file is read for every request, since the kubelet replaces the token before it
    expires."""

    def authorization(self) -> dict[str, str]:
        token = self.token_file.read_text().strip() if self.token_file is not None else self.token
        return {"Authorization": f"Bearer {token}"} if token else {}


def in_cluster() -> Cluster | None:
    """Return the cluster in which this process runs, or None if it runs in none."""
    host, port = os.environ.get("KUBERNETES_SERVICE_HOST"), os.environ.get("KUBERNETES_SERVICE_PORT", "443")
    if not host or not (SERVICE_ACCOUNT / "token").exists():
        return None
    host = f"[{host}]" if ":" in host else host
    return Cluster(
        server=f"https://{host}:{port}",
        namespace=(SERVICE_ACCOUNT / "namespace").read_text().strip(),
        tls=ssl.create_default_context(cafile=str(SERVICE_ACCOUNT / "ca.crt")),
        token_file=SERVICE_ACCOUNT / "token",
    )


def from_kubeconfig(path: str | Path, context: str | None = None) -> Cluster:
    """Return the cluster of a kubeconfig's `context`, by default its current one. Supports tokens, token files and
    client certificates. Raises ConfigurationError for anything else."""
    path = Path(path).expanduser()
    try:
        config = yaml.safe_load(path.read_text())
        context_entry = _named(config, "contexts", context or config.get("current-context"))["context"]
        cluster = _named(config, "clusters", context_entry["cluster"])["cluster"]
        user = _named(config, "users", context_entry["user"])["user"] if context_entry.get("user") else {}
        server = str(cluster["server"])
    except OSError as error:
        raise ConfigurationError(f"the kubeconfig {path} cannot be read: {error}") from None
    except (yaml.YAMLError, KeyError, TypeError, AttributeError) as error:
        raise ConfigurationError(f"the file {path} is not a valid kubeconfig: {error!r}") from None
    if "exec" in user or "auth-provider" in user or "username" in user:
        raise ConfigurationError(
            f"the user in {path} logs in by a plugin or a password, which is not supported",
            hint="Create a service account, and put its token into the kubeconfig: kubectl create token NAME.",
        )
    token_file = user.get("tokenFile")
    return Cluster(
        server=server.rstrip("/"),
        namespace=context_entry.get("namespace", "default"),
        tls=_tls(path, cluster, user) if server.startswith("https:") else None,
        token=user.get("token"),
        token_file=None if token_file is None else _beside(path, token_file),
    )


def find(kubeconfig: str | None, context: str | None = None) -> Cluster:
    """Return the cluster of `kubeconfig` if given, else the one in which this process runs, else that of $KUBECONFIG
    or ~/.kube/config. Raises ConfigurationError if there is none."""
    if kubeconfig is None and (cluster := in_cluster()) is not None:
        return cluster
    path = Path(kubeconfig or os.environ.get("KUBECONFIG") or "~/.kube/config").expanduser()
    if not path.exists():
        raise ConfigurationError(
            f"the kubernetes executor finds no cluster: not inside one, and there is no {path}",
            hint="Run the worker in a pod with a service account, or name a kubeconfig.",
        )
    return from_kubeconfig(path, context)


def _tls(path: Path, cluster: Mapping[str, Any], user: Mapping[str, Any]) -> ssl.SSLContext:
    authority = cluster.get("certificate-authority")
    tls = ssl.create_default_context(
        cafile=None if authority is None else str(_beside(path, authority)),
        cadata=_decoded(cluster, "certificate-authority-data"),
    )
    if cluster.get("insecure-skip-tls-verify"):
        tls.check_hostname = False
        tls.verify_mode = ssl.CERT_NONE
    if "client-certificate-data" in user:
        # OpenSSL reads these from files only. The file exists for a moment, and no other user can read it.
        with tempfile.NamedTemporaryFile("w") as file:
            pem = (_decoded(user, "client-certificate-data"), _decoded(user, "client-key-data"))
            file.write("\n".join(part or "" for part in pem))
            file.flush()
            tls.load_cert_chain(file.name)
    elif "client-certificate" in user:
        tls.load_cert_chain(_beside(path, user["client-certificate"]), _beside(path, user["client-key"]))
    return tls


def _named(config: Mapping[str, Any], kind: str, name: str | None) -> dict[str, Any]:
    for entry in config[kind]:
        if entry["name"] == name:
            return dict(entry)
    raise KeyError(f"{kind}: {name}")


def _decoded(section: Mapping[str, Any], key: str) -> str | None:
    return base64.b64decode(section[key]).decode() if key in section else None


def _beside(path: Path, name: str) -> Path:
    """Return a path in a kubeconfig, which is relative to that file."""
    return path.parent / name
