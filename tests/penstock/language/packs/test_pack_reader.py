from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from penstock.errors import DefinitionError
from penstock.language.loading import Definitions, load


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(textwrap.dedent(text))
    return path


CODE = """
    from __future__ import annotations
    from typing import Annotated
    from penstock.language.schemas import Secret

    async def charge(
        customer: str, amount: int = 1, card: Annotated[str, Secret] = "", note: str | None = None
    ) -> dict[str, int]:
        return {customer: amount}
"""

IN_PYTHON = """
    from penstock.language.definitions import *
    from penstock.language.policies.policies import RetryPolicy, Timeouts
    from charging_code import charge as plain

    pack = Pack("shop", version="1.0")

    placed = Trigger("placed", description="An order.", schema={
        "type": "object",
        "properties": {"id": {"type": "string"}, "amount": {"type": "integer"}},
        "required": ["id", "amount"],
    })
    charge = action(
        pack=pack, description="Charge a card.", retry=RetryPolicy(max_attempts=3, retry_on=[TimeoutError, "httpx.ConnectError"]),
        timeouts=Timeouts(attempt=30, total="1h"), limits=[Limit(5, by="customer")], on_failure="notify", route="money",
    )(plain)
    notify = http_action("notify", "https://example.org/hook", parameters={"text": "string"}, options={"timeout": "5s"})
    resize = command_action("resize", ["convert", "-"], parameters={"size": {"type": "integer", "required": True}})
    train = kubernetes_action("train", "acme/train:1", timeouts={"attempt": None})
    Rule("big", trigger=placed, action=charge, when="payload.amount > 100", params={"customer": "{{ payload.id }}"}, priority=3)
    Limit(50, ref="database", scope=pack, rate="100/min", burst=10)
    Limit(1, ref="one_charge", scope=charge)
    Route("**::charge", "slow")
    Route("shop::*", "fast")
    Schedule(
        "nightly", action=charge, cron="0 2 * * *", timezone="Europe/Paris", params={"customer": "x"},
        missed=MissedFires(policy="skip"),
    )
"""

IN_YAML = {
    "pack.yaml": """
        name: shop
        version: "1.0"
        routes:
          - {pattern: "**::charge", route: slow}
          - {pattern: "shop::*", route: fast}
        """,
    "triggers/placed.yaml": """
        description: An order.
        schema:
          id: {type: string, required: true}
          amount: {type: integer, required: true}
        """,
    "actions/charge.yaml": """
        description: Charge a card.
        executor: python
        function: code.charging:charge
        retry: {max_attempts: 3, retry_on: [httpx.ConnectError, TimeoutError]}
        timeouts: {attempt: 30s, total: 1h}
        limits: [{max: 5, by: [customer]}]
        on_failure: notify
        route: money
        """,
    "actions/notify.yaml": """
        executor: http
        url: https://example.org/hook
        options: {timeout: 5}
        parameters: {text: {type: string}}
        """,
    "actions/resize.yaml": """
        command: [convert, "-"]
        parameters:
          type: object
          properties: {size: {type: integer}}
          required: [size]
        """,
    "actions/train.yml": "{image: 'acme/train:1', timeouts: {attempt: null}}",
    "rules.yaml": """
        big:
          trigger: placed
          action: shop.charge
          when: payload.amount > 100
          params:
            customer: "{{ payload.id }}"
          priority: 3
        """,
    "limits.yaml": """
        database: {max: 50, rate: 100/min, burst: 10}
        one_charge: {max: 1, scope: charge}
        """,
    "schedules/nightly.yaml": """
        action: charge
        cron: 0  2 * * *
        timezone: Europe/Paris
        params: {customer: x}
        missed: {policy: skip}
        """,
    "code/charging.py": CODE,
}


def in_yaml(folder: Path) -> Path:
    for name, text in IN_YAML.items():
        write(folder / name, text)
    return folder


def digests(definitions: Definitions) -> dict[str, str]:
    return {f"{one.kind} {one.ref}": one.digest for one in definitions.documents()}


def test_the_same_pack_in_python_and_in_yaml_has_the_same_digests(tmp_path: Path) -> None:
    write(tmp_path / "python/charging_code.py", CODE)
    from_python = load(write(tmp_path / "python/shop_in_python.py", IN_PYTHON))
    from_yaml = load(in_yaml(tmp_path / "shop"))
    from_python.check()
    from_yaml.check()
    assert {one.ref: one.body for one in from_yaml.documents()} == {
        one.ref: one.body for one in from_python.documents()
    }
    assert digests(from_yaml) == digests(from_python)
    assert len(digests(from_yaml)) == 12
    assert from_yaml.packs["shop"].version == "1.0"


def test_a_single_file_says_the_same_as_a_folder(tmp_path: Path) -> None:
    folder = in_yaml(tmp_path / "shop")
    text = IN_YAML["pack.yaml"]
    sections: dict[str, dict[str, str]] = {}
    for name, content in IN_YAML.items():
        path = Path(name)
        if path.parent.name not in ("", "code"):
            sections.setdefault(path.parent.name, {})[path.stem] = content
    whole = textwrap.dedent(text)
    for section, entries in sections.items():
        whole += f"\n{section}:\n"
        for name, content in entries.items():
            whole += f"  {name}:\n{textwrap.indent(textwrap.dedent(content).strip(), '    ')}\n"
    for name in ("rules", "limits"):
        whole += f"{name}:\n{textwrap.indent(textwrap.dedent(IN_YAML[f'{name}.yaml']).strip(), '  ')}\n"
    write(tmp_path / "single/code/charging.py", CODE)
    assert digests(load(write(tmp_path / "single/shop.yaml", whole))) == digests(load(folder))


def test_functions_of_a_pack_run_as_those_of_python_do(tmp_path: Path) -> None:
    charge = load(in_yaml(tmp_path / "only_here")).actions["shop.charge"]
    assert charge.is_coroutine
    assert charge.body()["executor"] == "async"
    assert charge.bind({"customer": "c"}) == {"customer": "c"}
    assert charge.function is not None
    assert charge.function.__module__ == "only_here.code.charging"


def test_packs_with_files_of_the_same_name_do_not_get_in_each_other_s_way(tmp_path: Path) -> None:
    one = load(in_yaml(tmp_path / "one")).actions["shop.charge"]
    two = load(in_yaml(tmp_path / "deeper/one")).actions["shop.charge"]
    three = load(in_yaml(tmp_path / "not-a-word")).actions["shop.charge"]
    assert len({one.function, two.function, three.function}) == 3


def test_a_program_of_the_pack_is_found_in_its_folder_and_stored_without_it(tmp_path: Path) -> None:
    write(tmp_path / "shop/pack.yaml", "name: shop\nactions: {resize: {command: [./bin/resize.sh, -v]}}\n")
    write(tmp_path / "shop/bin/resize.sh", "#!/bin/sh\n")
    resize = load(tmp_path / "shop").actions["shop.resize"]
    assert resize.document().body["options"] == {"command": ["./bin/resize.sh", "-v"]}
    program, flag = resize.options["command"]
    assert Path(program).samefile(tmp_path / "shop/bin/resize.sh")
    assert flag == "-v"
    assert Path(resize.options["cwd"]).samefile(tmp_path / "shop")


def test_poll_triggers_name_their_function(tmp_path: Path) -> None:
    write(
        tmp_path / "shop/pack.yaml",
        "name: shop\ntriggers: {new_files: {poll: {every: 30s, function: 'code:look'}}}\n",
    )
    write(tmp_path / "shop/code.py", "def look(state):\n    return []\n")
    found = load(tmp_path / "shop").triggers["shop.new_files"]
    assert found.document().body == {"ref": "shop.new_files", "poll": {"every": 30}}
    assert found.function is not None
    assert found.function({}) == []


def test_parameters_in_yaml_describe_the_function_s_own(tmp_path: Path) -> None:
    pack = in_yaml(tmp_path / "shop")
    write(
        pack / "actions/charge.yaml",
        "function: code.charging:charge\nparameters:\n  customer: {type: string, required: true, description: Who.}\n",
    )
    charge = load(pack).actions["shop.charge"]
    assert charge.parameters_schema["properties"] == {"customer": {"type": "string", "description": "Who."}}


def test_workflows_have_their_place_in_a_pack(tmp_path: Path) -> None:
    pack = in_yaml(tmp_path / "shop")
    write(pack / "workflows/fulfil.yaml", "tasks:\n  pay: {action: shop.charge, input: {customer: c}}\n")
    write(
        tmp_path / "alone.yaml",
        "workflow: shop.alone\ntasks:\n  pay: {action: shop.charge, input: {customer: c}}\n",
    )
    found = load(pack) + load(tmp_path / "alone.yaml")
    found.check()
    assert set(found.workflows) == {"shop.fulfil", "shop.alone"}
    write(pack / "workflows/fulfil.yaml", "tasks:\n  pay:\n    action: shop.chrage\n")
    with pytest.raises(DefinitionError, match=r"fulfil\.yaml:3: workflow shop\.fulfil: .*chrage"):
        load(pack).check()


def test_words_that_older_yaml_took_for_something_else_are_text(tmp_path: Path) -> None:
    path = write(
        tmp_path / "shop.yaml",
        """
        name: shop
        rules:
          on: {trigger: placed, action: work, params: {a: yes, b: 12:30, c: 2030-01-01, d: no}}
        """,
    )
    (rule,) = load(path).rules.values()
    assert rule.ref == "shop.on"
    assert rule.params == {"a": "yes", "b": "12:30", "c": "2030-01-01", "d": "no"}


def test_loading_a_pack_declares_nothing_in_the_module_that_loads_it(tmp_path: Path) -> None:
    in_yaml(tmp_path / "shop")
    script = write(
        tmp_path / "loader_script.py",
        f"""
        from penstock.language.loading import load
        loaded = load({str(tmp_path / "shop")!r}).documents()
        """,
    )
    assert len(load(script)) == 0
