"""Loops go by the names of their modules, in logs and metrics too."""

from __future__ import annotations

from pathlib import Path

from penstock_executor import loops


def test_each_module_of_a_loop_is_run_and_gives_it_its_name() -> None:
    names = [loop.name for loop in loops.LOOPS]
    assert names == [(loop.turn or loop.turns).__module__.rsplit(".", 1)[-1] for loop in loops.LOOPS], (
        "a LOOP has the name of its file"
    )
    assert sorted(names) == sorted(
        file.stem for file in Path(loops.__file__).parent.glob("*.py") if file.stem != "__init__"
    ), "each file in services/penstock_executor/loops has a line in LOOPS (its __init__.py)"
