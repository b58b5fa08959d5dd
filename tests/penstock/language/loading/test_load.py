from __future__ import annotations

import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.errors import DefinitionError
from penstock.language.definitions.importing import imported_file
from penstock.language.loading import Definitions, load, load_all

SHOP = """
    from penstock.language.definitions import Limit, Pack, Route, Rule, Trigger, action

    pack = Pack("shop")
    placed = Trigger("placed")

    @action(limits=Limit(2))
    def charge(customer: str) -> None: ...

    Rule("bare", trigger=placed, action=charge, params={"customer": "c"})
    several = [Rule(f"rule_{n}", trigger=placed, action=charge, params={"customer": "c"}) for n in range(2)]
    Route("**::charge", "slow")
    Route("shop::*", "fast", position=5)
    unused = Limit(3)
"""


@pytest.fixture(autouse=True)
def _imports_undone() -> Iterator[None]:
    for name in [name for name in sys.modules if name.partition(".")[0] in ("shop", "store")]:
        del sys.modules[name]  # of another test's folder
    path, modules = list(sys.path), set(sys.modules)
    yield
    sys.path[:] = path
    for name in set(sys.modules) - modules:
        del sys.modules[name]


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(textwrap.dedent(text))
    return path


def refs(definitions: Definitions) -> set[str]:
    return {f"{document.kind} {document.ref}" for document in definitions.documents()}


EXPECTED = {
    "trigger shop.placed",
    "action shop.charge",
    "limit shop.charge.all",
    "rule shop.bare",
    "rule shop.rule_0",
    "rule shop.rule_1",
    "route **::charge",
    "route shop::*",
}


def test_a_file_gives_its_top_level_declarations_bound_or_not(tmp_path: Path) -> None:
    loaded = load(write(tmp_path / "shop_file.py", SHOP))
    assert refs(loaded) == EXPECTED
    assert list(loaded.packs) == ["shop"]
    assert loaded.actions["shop.charge"].bind({"customer": "c"}) == {"customer": "c"}
    loaded.check()


def test_routes_keep_the_order_in_which_they_were_written_after_those_with_a_position(tmp_path: Path) -> None:
    loaded = load(write(tmp_path / "shop_routes.py", SHOP))
    assert [(route.pattern, route.position) for route in loaded.routes] == [
        ("shop::*", 5),
        ("**::charge", 1000),
    ]
    stored = {document.ref: document.body for document in loaded.documents() if document.kind == "route"}
    assert stored["**::charge"]["position"] == 1000


def test_loading_twice_gives_the_same(tmp_path: Path) -> None:
    path = write(tmp_path / "shop_twice.py", SHOP)
    assert load(path).documents() == load(str(path)).documents()


def test_a_module_is_found_by_its_name_from_the_current_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "shop_named.py", SHOP)
    monkeypatch.chdir(tmp_path)
    assert refs(load("shop_named")) == EXPECTED
    assert refs(load(sys.modules["shop_named"])) == EXPECTED


def test_a_package_gives_declarations_of_all_its_modules(tmp_path: Path) -> None:
    write(
        tmp_path / "store/__init__.py",
        "from penstock.language.definitions import Pack\npack = Pack('store')\n",
    )
    write(
        tmp_path / "store/a.py", "from penstock.language.definitions import action\n@action\ndef one(): ...\n"
    )
    write(
        tmp_path / "store/deep/__init__.py",
        "from penstock.language.definitions import action\nfrom store.a import one\n@action\ndef two(): ...\n",
    )
    assert refs(load(tmp_path / "store")) == {"action store.one", "action store.two"}
    assert refs(load(tmp_path / "store/a.py")) == {"action store.one"}
    assert sys.modules["store.a"] is not None


def test_a_folder_may_hold_python_yaml_and_packs(tmp_path: Path) -> None:
    write(tmp_path / "all/mixed_one.py", SHOP)
    write(tmp_path / "all/two.yaml", "name: two\ntriggers: {placed: {}}\n")
    write(tmp_path / "all/three/pack.yaml", "name: three\ntriggers: {placed: {}}\n")
    write(tmp_path / "all/.hidden/broken.py", "1/0")
    write(tmp_path / "all/notes.txt", "nothing")
    assert refs(load(tmp_path / "all")) == EXPECTED | {"trigger two.placed", "trigger three.placed"}


def test_several_sources_are_one_set(tmp_path: Path) -> None:
    one, two = (
        write(tmp_path / "several_one.py", SHOP),
        write(tmp_path / "two.yaml", "name: two\ntriggers: {t: {}}\n"),
    )
    assert refs(load_all(f"{one}, {two}")) == EXPECTED | {"trigger two.t"}
    assert len(load_all("")) == 0


def test_a_file_named_like_a_standard_module_harms_nothing(tmp_path: Path) -> None:
    import queue

    write(tmp_path / "queue.py", SHOP)
    assert refs(load(tmp_path / "queue.py")) == EXPECTED
    assert sys.modules["queue"] is queue


def test_two_files_of_the_same_name_are_two_modules(tmp_path: Path) -> None:
    write(tmp_path / "a/same_name.py", SHOP)
    other = [line for line in SHOP.replace('"shop"', '"other"').splitlines() if "Route(" not in line]
    write(tmp_path / "b/same_name.py", "\n".join(["    import re", *other]))
    both = load_all(f"{tmp_path / 'a/same_name.py'},{tmp_path / 'b/same_name.py'}")
    assert set(both.packs) == {"shop", "other"}


def test_a_ref_declared_twice_is_refused_with_both_places(tmp_path: Path) -> None:
    path = write(
        tmp_path / "twice.py",
        """\
        from penstock.language.definitions import Pack, Trigger
        pack = Pack("shop")
        Trigger("placed")
        Trigger("placed")
        """,
    )
    with pytest.raises(
        DefinitionError, match=r"twice\.py:4: trigger shop\.placed was declared before, at .*:3"
    ):
        load(path)


@pytest.mark.parametrize(
    "decorator", ["@action", "@action(timeout=3)", "@workflow", "@workflow()", "@trigger(every=60)"]
)
def test_two_functions_of_one_name_are_two_declarations(tmp_path: Path, decorator: str) -> None:
    """The name is bound to the second; the first would have been lost without a word."""
    path = write(
        tmp_path / "twice.py",
        f"""\
        from penstock import Pack, action, trigger, workflow
        pack = Pack("shop")
        @action
        def g(): ...
        {decorator}
        def f(): g()
        {decorator}
        def f(): g()
        """,
    )
    with pytest.raises(DefinitionError, match="was declared before"):
        load(path)


def test_an_action_varied_without_a_ref_of_its_own_is_a_duplicate(tmp_path: Path) -> None:
    path = write(
        tmp_path / "varied.py",
        """\
        from penstock.language.definitions import Pack, action
        pack = Pack("shop")
        @action
        def f(): ...
        slow = f.with_options(timeout=5)
        """,
    )
    with pytest.raises(DefinitionError, match="was declared before"):
        load(path)


def test_two_limits_by_the_same_parameters_belong_together(tmp_path: Path) -> None:
    path = write(
        tmp_path / "limits.py",
        """\
        from penstock.language.definitions import Limit, Pack, action
        pack = Pack("shop")
        @action(limits=[Limit(3), Limit(rate="5/s")])
        def f(): ...
        """,
    )
    with pytest.raises(DefinitionError, match="two limits by the same parameters") as raised:
        load(path)
    assert "as one" in str(raised.value.hint)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x = (\n", r"broken\.py:1: it is not Python"),
        ("\n1 / 0\n", r"broken\.py:2: importing .* failed: ZeroDivisionError"),
        ("\nraise SystemExit(3)\n", r"broken\.py:2: importing .* failed: SystemExit"),
        ("import no_such_library\n", r"broken\.py:1: importing .* No module named 'no_such_library'"),
        (
            "from penstock.language.definitions import Rule\n\nRule('shop.x', trigger='shop.t', acton='shop.a')\n",
            r"broken\.py:3: rule shop.x: acton: unknown option",
        ),
        (
            "from penstock.language.policies.policies import RetryPolicy\n\n\nRetryPolicy(max_atempts=3)\n",
            r"broken\.py:4: RetryPolicy: max_atempts: unknown option",
        ),
    ],
)
def test_a_module_that_fails_is_an_error_with_the_line_that_failed(
    tmp_path: Path, text: str, message: str
) -> None:
    with pytest.raises(DefinitionError, match=message) as raised:
        load(write(tmp_path / "broken.py", text))
    assert raised.value.hint


def test_a_module_inside_a_package_that_fails_is_named(tmp_path: Path) -> None:
    write(tmp_path / "fails/__init__.py", "")
    write(tmp_path / "fails/inner.py", "\n1 / 0\n")
    with pytest.raises(
        DefinitionError, match=r"inner\.py:2: importing fails\.inner failed: ZeroDivisionError"
    ):
        load(tmp_path / "fails")


def test_a_missing_file_or_module_is_reported_with_a_suggestion(tmp_path: Path) -> None:
    write(tmp_path / "shop.py", "")
    with pytest.raises(DefinitionError, match="there is no") as raised:
        load(tmp_path / "shpo.py")
    assert "shop.py" in str(raised.value.hint)
    with pytest.raises(DefinitionError, match="there is no module 'no_such_module'") as raised:
        load("no_such_module")
    assert "./shop.py" in str(raised.value.hint)
    with pytest.raises(DefinitionError, match="neither Python nor YAML"):
        load(write(tmp_path / "x.json", "{}"))


@pytest.mark.parametrize("folders", ["store", "store/deep", "store/deep/yard"])
def test_a_file_beside_a_package_of_its_name_runs_alone(tmp_path: Path, folders: str) -> None:
    raising = "import pathlib\npathlib.Path(__file__).with_name('ran').touch()\nraise RuntimeError('boom')\n"
    write(tmp_path / "elsewhere/store/__init__.py", raising)
    write(tmp_path / "elsewhere/store/deep/__init__.py", raising)
    write(tmp_path / "own" / folders / "code.py", "value = 1\n")
    sys.path.insert(0, str(tmp_path / "elsewhere"))
    assert imported_file(tmp_path / "own" / folders / "code.py", root=tmp_path / "own").value == 1
    assert not list(tmp_path.rglob("ran"))


def test_a_file_in_folders_without_init_has_its_dotted_name(tmp_path: Path) -> None:
    write(tmp_path / "store/deep/yard/code.py", "value = 1\n")
    module = imported_file(tmp_path / "store/deep/yard/code.py", root=tmp_path)
    assert module.__name__ == "store.deep.yard.code"
