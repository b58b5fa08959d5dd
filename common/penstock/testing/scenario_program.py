"""The scenarios of the conformance suite as a program, for executors that start programs. Standard library
only.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from typing import Any

TICK = 0.005
LONGEST = 60.0


def main(scenario: str) -> None:
    params: dict[str, Any] = json.loads(os.environ.get("PENSTOCK_PARAMS") or sys.stdin.read())
    if scenario == "echo":
        _result(
            {
                "value": params["value"],
                "attempt": int(os.environ["PENSTOCK_ATTEMPT"]),
                "token": os.environ["PENSTOCK_IDEMPOTENCY_TOKEN"],
            }
        )
    elif scenario == "fail":
        sys.exit("boom")
    elif scenario == "unstorable":
        print("this is not JSON")
    elif scenario == "chatter":
        for number in range(params["lines"]):
            print(params["word"], number, file=sys.stderr, flush=True)
        _result(params["lines"])
    elif scenario == "hold":
        open(params["path"] + ".held", "wb").close()
        for _ in range(int(LONGEST / TICK)):
            if os.path.exists(params["path"]):
                return _result("released")
            time.sleep(TICK)
        sys.exit("nobody released this attempt")
    elif scenario == "beat":
        for _ in range(int(LONGEST / TICK)):
            with open(params["path"], "ab") as file:
                file.write(b".")
            if os.path.exists(params["path"] + ".stop"):
                return
            time.sleep(TICK)
    elif scenario == "crash":
        os.kill(os.getpid(), signal.SIGKILL)
    else:
        sys.exit(f"unknown scenario {scenario}")


def _result(value: object) -> None:
    print(json.dumps(value))


if __name__ == "__main__":
    main(sys.argv[1])
