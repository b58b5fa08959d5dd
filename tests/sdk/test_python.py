"""The worker of Penstock conforms when it calls a gateway."""

from __future__ import annotations

import sys

from tests.sdk.conformance import ROOT, faults


def test_python_worker_over_gateway_conforms() -> None:
    assert faults(sys.executable, str(ROOT / "sdk/python/conformance.py")) == {}
