"""Work on a real Dask cluster, from an event to its result; and workers of Dask, or of Penstock, that die over it."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest

pytest.importorskip("distributed", reason="Dask is not installed: make test-compute", exc_type=ImportError)

from tests.compute.clusters import dask_cluster
from tests.compute.losses import ClusterFlows


class TestDaskFlows(ClusterFlows):
    kind = "dask"

    @pytest.fixture(autouse=True)
    def _on(self) -> Iterator[None]:
        with dask_cluster() as self.cluster:
            self.address = self.cluster.address
            yield

    def lose(self, pids: tuple[int, int]) -> None:
        os.kill(pids[1], signal.SIGKILL)

    def recover(self) -> None:
        self.cluster.add_worker()

    def said(self) -> str:
        return self.cluster.said()


class TestDaskFlowsWithAnotherWorker(TestDaskFlows):
    """To which Dask itself would give what was lost."""

    def lose(self, pids: tuple[int, int]) -> None:
        self.cluster.add_worker()
        super().lose(pids)

    def recover(self) -> None:
        """The other one is there."""
