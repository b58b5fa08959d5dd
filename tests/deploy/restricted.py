"""The `restricted` pod security standard of Kubernetes (1.34), and what this project holds beside it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

SHARED = ("hostNetwork", "hostPID", "hostIPC")
VOLUMES = {
    *("configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "image"),
    *("persistentVolumeClaim", "projected", "secret"),
}
SECCOMP = {"RuntimeDefault", "Localhost"}


def violations(pod: dict[str, Any]) -> list[str]:
    """Return the faults of a pod's spec by the standard or by the rules of this project."""
    return [
        *_of_pod(pod),
        *(violation for container in _containers(pod) for violation in _of_container(container, pod)),
    ]


def _containers(pod: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        container
        for kind in ("initContainers", "containers", "ephemeralContainers")
        for container in pod.get(kind, [])
    ]


def _of_pod(pod: dict[str, Any]) -> Iterator[str]:
    yield from (f"{name} is shared with the host" for name in SHARED if pod.get(name))
    for volume in pod.get("volumes", []):
        if kinds := set(volume) - {"name"} - VOLUMES:
            yield f"volume {volume['name']} is {', '.join(kinds)}"
    context = pod.get("securityContext", {})
    if context.get("sysctls"):
        yield "sysctls are set"
    if context.get("seLinuxOptions") or context.get("windowsOptions"):
        yield "SELinux or Windows options are set"


def _of_container(container: dict[str, Any], pod: dict[str, Any]) -> Iterator[str]:
    name, own = container["name"], container.get("securityContext", {})
    both = {**pod.get("securityContext", {}), **own}
    if both.get("runAsNonRoot") is not True or not both.get("runAsUser", 1):
        yield f"{name} may be root"
    if both.get("seccompProfile", {}).get("type") not in SECCOMP:
        yield f"{name} has no seccomp profile"
    if own.get("allowPrivilegeEscalation") is not False or own.get("privileged"):
        yield f"{name} may become privileged"
    capabilities = own.get("capabilities", {})
    if "ALL" not in capabilities.get("drop", []) or set(capabilities.get("add", [])) - {"NET_BIND_SERVICE"}:
        yield f"{name} has capabilities"
    if own.get("procMount", "Default") != "Default":
        yield f"{name} sees all of /proc"
    yield from (
        f"{name} takes a port of the host" for port in container.get("ports", []) if "hostPort" in port
    )
    if own.get("readOnlyRootFilesystem") is not True:
        yield f"{name} may write to its file system"
    resources = container.get("resources", {})
    if "memory" not in resources.get("limits", {}) or "requests" not in resources:
        yield f"{name} says not what it needs"
