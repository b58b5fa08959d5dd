"""The faults of a pack, by mistake or on purpose, which are refused."""

from __future__ import annotations

import os
import textwrap
from pathlib import Path

import pytest

from penstock.errors import DefinitionError
from penstock.language.loading import load
from penstock.language.workflows import from_yaml, safe_yaml
from penstock.language.workflows.safe_yaml import MAX_BYTES

CODE = "async def charge(customer: str, amount: int = 1) -> None: ...\n"


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(textwrap.dedent(text))
    return path


WRONG = [
    ("pack.yaml", "name: My Shop\n", r"pack\.yaml:1: 'My Shop' is not a pack's name", "letter first"),
    ("pack.yaml", "version: '1'\n", r"the pack has no name", "name: shop"),
    ("pack.yaml", "name: shop\nversion: 1.0\n", r"pack\.yaml:2: version is not text", 'version: "1.0"'),
    ("pack.yaml", "name: shop\nruels: {}\n", r"pack\.yaml:2: a pack has no section 'ruels'", "rules"),
    ("pack.yaml", "[1]\n", r"a pack is not a mapping", "key: value"),
    ("pack.yml", "name: shop\n", r"has a pack\.yaml too", "Keep one"),
    ("rulez.yaml", "{}\n", r"a pack has no rulez\.yaml", "rules"),
    ("action/x.yaml", "{}\n", r"a pack has no folder action/", "actions/"),
    ("actions/x.txt", "", r"x\.txt:1: it is not YAML", "folder of another name"),
    ("actions/Bad-Name.yaml", "{command: [a]}\n", r"Bad-Name\.yaml:1: action is not a ref", "bad_name"),
    ("actions/x.yaml", "{}\n", r"action shop\.x does not say what to run", "function"),
    ("actions/x.yaml", "command: [a]\nurl: https://x\n", r"x\.yaml:2: action shop\.x has both", "Keep one"),
    (
        "actions/x.yaml",
        "command: [a]\nexecutor: http\n",
        r"x\.yaml:2: .* does not run a command",
        "executor: command",
    ),
    (
        "actions/x.yaml",
        "command: [a]\ntimout: 3\n",
        r"x\.yaml:2: action shop\.x: unknown option 'timout'",
        "timeout",
    ),
    (
        "actions/x.yaml",
        "command: [a]\nretry:\n  max_atempts: 3\n",
        r"x\.yaml:3: .*max_atempts: unknown option",
        "max_attempts",
    ),
    (
        "actions/x.yaml",
        "command: [a]\nretry:\n  initial_delay: soon\n",
        r"x\.yaml:3: .*is not a duration",
        "1h30m",
    ),
    ("actions/x.yaml", "command: a b\n", r"x\.yaml:1: action shop\.x: command", ""),
    (
        "actions/x.yaml",
        "command: [a]\nparameters:\n  a: {type: strng}\n",
        r"x\.yaml:2: .*unknown type 'strng'",
        "string",
    ),
    (
        "actions/x.yaml",
        "command: [a]\nlimits:\n  - max: 1\n  - max: 0\n",
        r"x\.yaml:4: .*limits\[1\]\.max",
        "",
    ),
    ("actions/x.yaml", "ref: other.x\ncommand: [a]\n", r"other\.x is not of the pack shop", "name alone"),
    ("actions/x.yaml", "function: charge\n", r"x\.yaml:1: function is not module:name", "code.orders:charge"),
    ("actions/x.yaml", "function: code.charging:chrage\n", r"is not a function", "charge"),
    ("actions/x.yaml", "function: code.missing:charge\n", r"missing\.py is not a file", ""),
    ("actions/x.yaml", "function: ..secrets:charge\n", r"function is not module:name", ""),
    ("actions/x.yaml", "function: '../secrets:charge'\n", r"function is not module:name", ""),
    ("actions/x.yaml", "function: os:system\n", r"os\.py is not a file", ""),
    (
        "actions/charge.yaml",
        "function: code.charging:charge\nparameters: {custmer: {type: string, required: true}}\n",
        r"charge\.yaml:2: .* its function takes no custmer",
        "customer",
    ),
    (
        "actions/charge.yaml",
        "function: code.charging:charge\nparameters: {customer: {type: string}}\n",
        r"charge\.yaml:2: .* its function needs customer",
        "required: true",
    ),
    ("actions/x.yaml", "command: [/bin/sh, -c]\n", r"/bin/sh lies outside of the pack", "PATH"),
    ("actions/x.yaml", "command: [../../bin/sh]\n", r"leads out of the pack's folder", "into the pack"),
    ("actions/x.yaml", "command: [./missing.sh]\n", r"missing\.sh is not a file", ""),
    ("actions/x.yaml", "command: [a]\noptions: {cwd: /etc}\n", r"x\.yaml:2: .*runs in the pack's folder", ""),
    (
        "rules.yaml",
        "big:\n  trigger: placed\n  acton: charge\n",
        r"rules\.yaml:3: .*acton: unknown option",
        "action",
    ),
    ("rules.yaml", "big:\n  trigger: placed\n", r"rules\.yaml:1: rule shop\.big: action: is missing", ""),
    (
        "rules.yaml",
        "big:\n  trigger: placed\n  action: charge\n  when: 'a >'\n",
        r"rules\.yaml:4: .*when",
        "",
    ),
    ("rules.yaml", "big: 3\n", r"rules\.yaml:1: big is not a mapping", ""),
    ("rules.yaml", "big: {}\nbig: {}\n", r"rules\.yaml:2.*given twice", ""),
    ("routes.yaml", "'a::b**': gpu\n", r"routes\.yaml:1: .*glued", ""),
    (
        "schedules.yaml",
        "s:\n  action: charge\n  cron: 61 * * * *\n",
        r"schedules\.yaml:3: .*minute is wrong at character 1",
        "",
    ),
    ("triggers.yaml", "t:\n  poll:\n    every: 5s\n", r"triggers\.yaml:\d: function is not module:name", ""),
    ("limits.yaml", "l:\n  rate: often\n", r"limits\.yaml:2: .*is not a rate", "100/min"),
    ("workflows.yaml", "w:\n  taks: {}\n", r"workflows\.yaml:\d: workflow shop\.w", ""),
]


@pytest.mark.parametrize(("file", "text", "message", "hint"), WRONG)
def test_a_wrong_pack_is_refused_with_file_line_and_remedy(
    tmp_path: Path, file: str, text: str, message: str, hint: str
) -> None:
    pack = tmp_path / "shop"
    write(pack / "pack.yaml", "name: shop\n")
    write(pack / "code/charging.py", CODE)
    write(pack / file, text)
    with pytest.raises(DefinitionError, match=message) as raised:
        load(pack).check({"trigger": {"shop.placed": None}, "action": {"shop.charge": None}})
    assert hint in str(raised.value.hint)


def test_the_pack_ends_at_its_folder_also_for_symbolic_links(tmp_path: Path) -> None:
    pack = tmp_path / "shop"
    write(pack / "pack.yaml", "name: shop\n")
    write(tmp_path / "outside.yaml", "command: [a]\n")
    write(tmp_path / "outside.py", "def f(): ...\n")
    (pack / "actions").mkdir()
    (pack / "actions/x.yaml").symlink_to(tmp_path / "outside.yaml")
    with pytest.raises(DefinitionError, match="leads out of the pack's folder"):
        load(pack)
    (pack / "actions/x.yaml").unlink()
    (pack / "code.py").symlink_to(tmp_path / "outside.py")
    write(pack / "actions/x.yaml", "function: code:f\n")
    with pytest.raises(DefinitionError, match="leads out of the pack's folder"):
        load(pack)
    (pack / "code.py").unlink()
    (pack / "real.py").write_text("def f(): ...\n")
    (pack / "code.py").symlink_to(pack / "real.py")
    assert "shop.x" in load(pack).actions


def test_a_pipe_in_place_of_a_file_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    write(tmp_path / "shop/pack.yaml", "name: shop\n")
    os.mkfifo(tmp_path / "shop/rules.yaml")
    with pytest.raises(DefinitionError, match="is not a file"):
        load(tmp_path / "shop")


def bomb() -> str:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 12)]
    return "\n".join(lines)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (bomb().encode(), "too large or nests too deep"),
        (b"a: &a [*a]", "too deep"),
        (b"[" * 5000, "deep"),
        (b"a: " + b"{a: " * 5000, "deep"),
        (b"x: " + b"y" * MAX_BYTES, "bytes"),
        (b"x: \xff\xfe", "shop.yaml:1: it is not UTF-8"),
        (b"x: a\0b", "shop.yaml"),
        (b"x: !!python/name:os.system ls", "not supported"),
        (b"x: !thing 3", "not supported"),
        (b"a: 1\n--- \nb: 2\n", "another document"),
        (b"a: [1, 2\nb: 3", "shop.yaml:2"),
        (b"name: shop\nactions: {? [1, 2] : 3}", "a key is a single word"),
    ],
)
def test_hostile_yaml_is_refused_quickly(tmp_path: Path, data: bytes, message: str) -> None:
    path = tmp_path / "shop.yaml"
    path.write_bytes(data)
    with pytest.raises(DefinitionError, match=message):
        load(path)


def test_all_that_is_wrong_in_a_pack_is_told_at_once(tmp_path: Path) -> None:
    write(tmp_path / "pack.yaml", "name: shop\nactions:\n  one: {command: [a], timout: 3}\n  two: {}\n")
    write(tmp_path / "rules.yaml", "big: {triger: placed, action: one}\n")
    write(tmp_path / "limits.yaml", "x: [\n")
    with pytest.raises(DefinitionError) as caught:
        load(tmp_path)
    for place in ("pack.yaml:3", "pack.yaml:4", "rules.yaml:1", "limits.yaml:2"):
        assert place in caught.value.message
    assert "Did you mean 'timeout'?" in caught.value.message
    assert "problems were found" in str(caught.value.hint)


def test_a_large_workflow_is_read_from_a_file_as_from_a_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = f"workflow: shop.large\ndescription: {'x' * 600 * 1024}\ntasks: {{one: {{action: noop}}}}\n"
    [workflow] = load(write(tmp_path / "large.yaml", text)).workflows.values()
    assert workflow.document().digest == from_yaml(text).document().digest
    monkeypatch.setattr(safe_yaml, "MAX_BYTES", 1000)
    for read in (lambda: load(tmp_path / "large.yaml"), lambda: from_yaml(text)):
        with pytest.raises(DefinitionError, match="more than 1,000 bytes") as caught:
            read()
        assert "workflows in other files" in str(caught.value.hint)
