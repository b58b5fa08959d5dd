"""A plain model of windows, written from docs/windows.md: what each event becomes, from a rule's window and a list of events."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

CONDITIONS: Mapping[str | None, Callable[[Any], bool]] = {
    None: lambda payload: True,
    "payload.size > 3": lambda payload: payload["size"] > 3,
    "payload.size < 7": lambda payload: payload["size"] < 7,
}
PATTERNS = ("sequence", "all", "any", "count", "absence")


def model(
    window: Mapping[str, Any], events: Sequence[Mapping[str, Any]], full: int
) -> tuple[list[Any], dict[int, str]]:
    """Return the matches, each as the (part, n) of its events, and the reason of each dropped event by its n. An event has id,
    trigger, tenant, payload and `stored`; times are seconds."""
    pattern = next(name for name in PATTERNS if name in window)
    parts = window[pattern]
    needed = window.get("at_least", 1) if pattern in ("any", "count") else len(parts)
    reasons: dict[int, str] = {}
    lines: dict[Any, list[Any]] = {}
    for event in {event["id"]: event for event in events}.values():
        body = event["payload"]
        fits = [
            number
            for number, part in enumerate(parts)
            if part["trigger"] == event["trigger"] and CONDITIONS[part.get("when")](body)
        ]
        if not fits:
            continue
        at = min(body["at"], event["stored"]) if "timestamp" in window else event["stored"]
        if event["stored"] - at > window.get("lateness", 0):
            reasons[body["n"]] = "late"
            continue
        path = parts[fits[0]].get("by", window.get("by", [None]))[0]
        value = body.get(path.removeprefix("payload."), "missing") if path else None
        lines.setdefault((event["tenant"], value), []).append((at, event["id"], body["n"], fits))
    matches = []
    for line in lines.values():
        line.sort()
        while line:
            at, _, n, fits = line[0]
            inside = [line[0], *(event for event in line[1:] if event[0] < at + window.get("within", 0))]
            filled: list[tuple[int, int]] = []
            reason = "full" if len(inside) > full else "expired"
            if pattern == "absence":
                answered = any(1 in event[3] for event in inside[1:full])
                filled = [(0, n)] if 0 in fits and not answered and len(inside) <= full else []
                reason = "expired" if 0 not in fits else "answered" if answered else reason
            elif pattern != "sequence" or 0 in fits:
                for _, _, number, suits in inside[:full]:
                    wanted = [len(filled)] if pattern == "sequence" else range(len(parts))
                    free = [
                        p
                        for p in wanted
                        if p in suits and (pattern == "count" or p not in [t for t, _ in filled])
                    ]
                    if free and len(filled) < needed:
                        filled.append((free[0], number))
                filled = filled if len(filled) == needed else []
            else:
                reason = "expired"
            if filled:
                matches.append(filled)
            else:
                reasons[n] = reason
            gone = {number for _, number in filled} or {n}
            line[:] = [event for event in line if event[2] not in gone]
    return sorted(matches), reasons
