"""The effect of `make mutate`, on a sample: its operators, its verdicts, and the survivors that are explained."""

from __future__ import annotations

import pytest

from penstock.store.schema import functions
from tests.crash.processes import ROOT
from tests.mutation import verdicts
from tests.mutation.sql import measure
from tests.mutation.sql.operators import mutants

SAMPLE = """
-- A sample.
create or replace function sample(p_ids uuid[], p_age interval, p_take integer) returns integer
language plpgsql
as $$
declare
    v_ids uuid[];
begin
    perform from execution where id = any (p_ids) order by id for no key update;
    delete from claim where id = any (p_ids);
    if p_take >= 1 and v_ids is null then -- a remark, and no condition
        v_ids := array(
            select id from execution e where e.status in ('requested', 'queued') and (e.rank > 1 or not exists (select from slot))
            order by rank limit p_take for update skip locked);
    end if;
    insert into wake (id) select unnest(v_ids) on conflict (id) do update set at = now();
    return coalesce(cardinality(v_ids), 0);
end $$;
"""
MADE = {
    "without `for no key update`": "where id = any (p_ids) order by id ;",
    "without `order by id`": "where id = any (p_ids)  for no key update;",
    "without `delete from claim where id = any (p_ids);`": "for no key update;\n    null;",
    "`delete from claim where id = any (p_ids);` before "
    "`perform from execution where id = any (p_ids) order by id for no key update;`": "begin\n    delete from claim where",
    "without `and p_take >= 1`": "if  v_ids is null then",
    "without `and v_ids is null`": "if p_take >= 1  then",
    "not `if p_take >= 1 and v_ids is null`": "if not (p_take >= 1 and v_ids is null) then",
    "`>` in `); if p_take >= 1 and v_ids`": "if p_take > 1 and",
    "without `and e.status in ('requested', 'queued')`": "where  (e.rank > 1",
    "no 'queued' in `in ('requested', 'queued')`": "in ('requested') and",
    "without `or e.rank > 1`": "( not exists (select from slot))",
    "waits in `by rank limit p_take for update skip locked`": "limit p_take for update );",
    "without `limit p_take`": "order by rank  for update skip locked);",
    "without `on conflict (id) do update set at = now()`": "select unnest(v_ids) ;",
    "nothing in `on conflict (id) do update set at = now()`": "on conflict (id) do nothing;",
    "no 0 in `coalesce(cardinality(v_ids), 0)`": "return coalesce(cardinality(v_ids));",
}


@pytest.mark.parametrize("what", MADE)
def test_the_effects_on_a_function(what: str) -> None:
    made = {mutant.what: mutant for mutant in mutants("sample", SAMPLE)}
    changed = made[what].applied(SAMPLE)
    assert MADE[what] in changed
    assert changed.startswith(SAMPLE[: made[what].start])
    assert changed.endswith(SAMPLE[made[what].end :])


def test_no_two_mutants_are_the_same_or_have_one_name() -> None:
    made = mutants("sample", SAMPLE)
    assert len({one.name for one in made}) == len({one.applied(SAMPLE) for one in made}) == len(made)
    assert SAMPLE not in {one.applied(SAMPLE) for one in made}


def test_there_are_enough_of_every_function() -> None:
    paths = sorted((functions.folder() / "functions").rglob("*.sql"))
    made = [len(mutants(path.stem, path.read_text())) for path in paths]
    assert sum(made) >= 2000
    assert sum(bool(count) for count in made) >= len(paths) - 8


def test_each_survivor_that_is_explained_is_there_still() -> None:
    """Its place says the same as when it was explained, and the last run did not find it either."""
    survived = {
        name
        for part in verdicts.parts()
        for name, one in verdicts.read(part).items()
        if one.verdict == verdicts.SURVIVED
    }
    for name, why in verdicts.explained().items():
        assert name in survived, name
        assert len(why) > 20, name
        assert _is_there(name), name


def _is_there(name: str) -> bool:
    home, _, what = name.partition(": ")
    if "." not in home:
        [path] = (functions.folder() / "functions").rglob(f"{home}.sql")
        return name in {one.name for one in mutants(home, path.read_text())}
    module = home.rpartition(".")[0]
    folder = "services" if home.startswith("penstock_") else "common/penstock"
    path = ROOT / folder / f"{module.replace('.', '/')}.py"
    if not path.exists():  # the function is a method
        path = path.parent.with_suffix(".py")
    source = " ".join(line.strip() for line in path.read_text().splitlines())
    return what.partition("` became `")[0].removeprefix("`").partition("  ")[0] in source


def test_tests_that_call_functions_are_there_still() -> None:
    assert len(measure.read()) >= 400
    assert [one.test for one in measure.read() if not measure.is_there(one.test)] == []


def test_each_function_has_a_test_that_was_seen_to_call_it() -> None:
    """No test is tried on the mutants of a function without a row in calls.tsv: they all survive. Those in unmeasured.txt are
    called by tests that were not measured yet. A new function is not among them."""
    called = set[str]().union(*(one.calls for one in measure.read()))
    sources = {
        path.stem: path.read_text() for path in sorted((functions.folder() / "functions").rglob("*.sql"))
    }
    assert called - sources.keys() == set(), "functions that are gone"
    missing = {name for name, source in sources.items() if name not in called and mutants(name, source)}
    unmeasured = set(measure.FILE.with_name("unmeasured.txt").read_text().split())
    assert sorted(missing - unmeasured) == [], 'make mutate ARGS="measure tests/that/file.py"'
    assert sorted(unmeasured - missing) == [], "take these out of unmeasured.txt"
