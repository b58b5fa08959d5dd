"""Random workflows, and random ways for their executions to end."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from penstock.language.workflows.check import check
from penstock.language.workflows.model import Workflow

NAMED = ["all_success", "all_done", "one_success", "one_failed", "none_failed", "always"]
ENDS = st.sampled_from([*["completed"] * 6, *["failed"] * 3, "timeout", "cancelled", "abandoned", "skipped"])
VALUES = st.integers(0, 3)
VARIABLES = ["x", "y"]
CONDITIONS = [
    *(None, True, "failed()", "succeeded()", "not succeeded()", "result == 1", "vars.x > 1"),
    *("failed() and error.code == 1", "1 // vars.x == 1", "status == 'timeout'"),
]


@st.composite
def rules(draw: st.DrawFn, sources: list[str], depth: int = 0) -> Any:
    kinds = ["named", "task", "task", "context", "expression"] + (["tree"] * 3 if depth < 2 else [])
    kind = draw(st.sampled_from(kinds))
    if kind == "named":
        return draw(st.sampled_from(NAMED))
    if kind == "task":
        return {draw(st.sampled_from(["success", "failed", "skipped"])): draw(st.sampled_from(sources))}
    if kind == "context":
        op = draw(st.sampled_from(["==", "!=", ">", "<=", "in", "not in", "exists", "not exists"]))
        rule: dict[str, Any] = {"context": draw(st.sampled_from([*VARIABLES, "p", "nowhere"])), "op": op}
        if op in ("in", "not in"):
            rule["value"] = draw(st.lists(VALUES, max_size=2))
        elif "exists" not in op:
            rule["value"] = draw(VALUES)
        return rule
    if kind == "expression":
        return f"{{{{ vars.{draw(st.sampled_from(VARIABLES))} > {draw(VALUES)} }}}}"
    parts = draw(st.lists(rules(sources, depth + 1), min_size=1, max_size=3))
    return {draw(st.sampled_from(["all", "any", "none"])): parts}


@st.composite
def values(draw: st.DrawFn, before: list[str], extra: tuple[str, ...] = ()) -> Any:
    """Something to render: a constant, a variable, the parameter, a result of a task before; seldom an
    error."""
    choices = ["constant", *["variable"] * 4, "parameter", *extra]
    kind = draw(st.sampled_from([*choices, *["task"] * (2 if before else 0)]))
    if kind == "constant":
        return draw(VALUES)
    if kind == "variable":
        return f"{{{{ vars.{draw(st.sampled_from(VARIABLES))} }}}}"
    if kind == "task":
        return f"{{{{ tasks.{draw(st.sampled_from(before))}.result }}}}"
    return {"parameter": "{{ parameters.p }}", "result": "{{ result }}", "error": "{{ 1 + result.a.b }}"}.get(
        kind, f"{{{{ {kind} }}}}"
    )


@st.composite
def workflows(draw: st.DrawFn, early: bool = True, most: int = 7, fail_fast: bool | None = False) -> Workflow:
    """`early`: with tasks that do not wait for all their sources, so that it matters which task is faster. `fail_fast`
    None: in half of the workflows."""
    count = draw(st.integers(1, most))
    names = [f"t{n}" for n in range(count)]
    tasks: dict[str, dict[str, Any]] = {}
    before: dict[str, list[str]] = {}
    for n, name in enumerate(names):
        sources = draw(st.lists(st.sampled_from(names[:n]), unique=True, max_size=3)) if n else []
        led = [source for source in sources if draw(st.booleans())]
        needs = [source for source in sources if source not in led]
        task = draw(_task(name, sources))
        before[name] = sorted({*sources, *(up for source in sources for up in before[source])})
        if needs:
            task["needs"] = needs
        for source in led:
            draw(_transition(tasks[source], name))
        draw(_terms(task, sources, bool(led), bool(needs), early))
        if task["action"] != "fail":
            task["input"] = {"a": draw(values(before[name]))}
        if "with_items" in task:
            task["input"]["item"] = draw(
                st.sampled_from(["{{ item }}", "{{ index }}", "{{ 10 // (item - 1) }}"])
            )
        tasks[name] = task
    document: dict[str, Any] = {
        "ref": "random.graph",
        "vars": {"x": draw(VALUES), "y": "{{ parameters.p }}"},
        "tasks": list(draw(st.permutations(list(tasks.values())))),
        "output": {"v": "{{ context }}", "r": f"{{{{ tasks.{draw(st.sampled_from(names))}.result }}}}"},
    }
    if draw(st.booleans()) if fail_fast is None else fail_fast:
        document["fail_fast"] = True
    return Workflow.model_validate(document)


@st.composite
def _task(draw: st.DrawFn, name: str, sources: list[str]) -> dict[str, Any]:
    action = draw(st.sampled_from(["a.work"] * 8 + ["noop", "fail"]))
    task: dict[str, Any] = {"name": name, "action": action}
    if draw(st.integers(0, 4)) == 0:
        task["allow_failure"] = True
    if draw(st.integers(0, 3)):
        ends = ("result", "result", "result", "error", "status")
        task["publish"] = {draw(st.sampled_from(VARIABLES)): draw(values([], ends))}
    if action == "a.work" and draw(st.integers(0, 3)) == 0:
        task["with_items"] = draw(
            st.sampled_from(
                ["{{ range(0, 5) }}", "{{ range(0, parameters.p) }}", "{{ vars.x }}", [], [3, 1, 2]]
            )
        )
        if draw(st.booleans()):
            task["concurrency"] = draw(st.integers(1, 3))
        if draw(st.booleans()):
            task["item_failures"] = {
                "tolerate": draw(st.sampled_from([0, 1, "50%"])),
                "then": draw(st.sampled_from(["finish", "stop", "cancel"])),
            }
        if draw(st.integers(0, 3)) == 0:
            task["batch_size"] = draw(st.integers(1, 3))
    return task


@st.composite
def _transition(draw: st.DrawFn, source: dict[str, Any], target: str) -> None:
    when = draw(st.sampled_from(CONDITIONS))
    way: dict[str, Any] = {"do": [target]} | ({} if when is None else {"when": when})
    if draw(st.integers(0, 2)) == 0:
        way["publish"] = {draw(st.sampled_from(VARIABLES)): draw(values([], ("result", "status")))}
    source.setdefault("next", []).append(way)
    if draw(st.integers(0, 5)) == 0:
        source["next"].append({"when": "failed()", "publish": {"x": 9}})


@st.composite
def _terms(
    draw: st.DrawFn, task: dict[str, Any], sources: list[str], led: bool, needs: bool, early: bool
) -> None:
    if bool(sources) and draw(st.booleans()):
        task["when"] = draw(rules(sources))
        if not early and task["when"] in ("one_success", "one_failed"):
            task["when"] = {"all": ["all_done", task["when"]]}
    named = isinstance(task.get("when"), str) and task["when"] in NAMED
    if led and (not early or (needs and "when" not in task)) and not named:
        task["join"] = "all"
    if early and sources and not named and draw(st.integers(0, 2)) == 0:
        task["join"] = draw(st.sampled_from(["all", "any", *range(1, len(sources) + 1)]))
    if not early and led and "join" not in task:
        task["join"] = "all"


def sound(workflow: Workflow) -> bool:
    """Return true if it would be accepted. Rules that can never hold are the only fault of random ones."""
    return not check(workflow)
