"""Everything that is broken on purpose, by what it hits."""

from __future__ import annotations

from collections.abc import Sequence

from tests.chaos.faults import broker, network, processes, servers
from tests.chaos.faults.fault import Fault

OF_PROCESSES = processes.FAULTS
OF_SERVERS = (*network.FAULTS, *broker.FAULTS, *servers.FAULTS)


def named(faults: Sequence[Fault], only: Sequence[str]) -> Sequence[Fault]:
    """Return the faults of these names, or all without a name."""
    return [fault for fault in faults if not only or fault.name in only]
