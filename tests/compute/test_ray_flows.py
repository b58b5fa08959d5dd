"""Work on a real Ray cluster, from an event to its result; and processes of Ray, or workers of Penstock, that die over it."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest

pytest.importorskip("ray", reason="Ray is not installed: make test-compute", exc_type=ImportError)

from tests.compute.clusters import RayCluster, ray_cluster
from tests.compute.losses import ClusterFlows


@pytest.fixture(scope="module")
def cluster() -> Iterator[RayCluster]:
    with ray_cluster() as cluster:
        yield cluster


class TestRayFlows(ClusterFlows):
    kind = "ray"

    @pytest.fixture(autouse=True)
    def _on(self, cluster: RayCluster) -> None:
        self.cluster, self.address = cluster, cluster.address

    def lose(self, pids: tuple[int, int]) -> None:
        os.kill(pids[1], signal.SIGKILL)

    def said(self) -> str:
        return self.cluster.said()


class TestRayFlowsFromOutside(TestRayFlows):
    """By the client of Ray, as a worker of Penstock that is on no node."""

    @pytest.fixture(autouse=True)
    def _on(self, cluster: RayCluster) -> None:
        self.cluster, self.address = cluster, cluster.outside
