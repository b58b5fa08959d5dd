"""The ends of attempts of the library for Node. Whatever the code of an action does, a gateway gets one end."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
from pathlib import Path
from typing import Any, NamedTuple

import orjson
import pytest

from penstock import load
from penstock.errors import ResultNotStorable
from penstock.language.moves import FINAL
from penstock.run import result_encoding
from penstock.service.assembly import Stop
from penstock.service.embedded.cluster import free_port
from penstock_api.main import serve
from tests.flows.installation import AS_USED, Installation
from tests.sdk.library import build_library

pytestmark = pytest.mark.skipif(shutil.which("npm") is None, reason="this machine has no Node")

PACK = """
name: odd
actions:
  play:
    executor: remote
    timeout: 20
    retry: {max_attempts: 2, initial_delay: 0.01, jitter: 0, never_on: [SyntaxError]}
    parameters: {case: {type: string}, value: {}}
"""
WORKER = """
import { Client, Defer, NonRetryable, Retry, Worker, action } from "penstock-sdk";
const cases = {
%s
};
const play = action("odd.play", (p, run) => cases[p.case](p, run));
await new Worker({ actions: [play], slots: 16, onError: (error) => console.log(String(error)) }).run();
"""
CIRCLE = "const a = {}; a.a = [a];"
PROXY = (
    "let proxy; proxy = new Proxy({}, { getPrototypeOf: () => proxy, get() { throw new Error('got'); } });"
)
BOUNDS = "must be a number of seconds from 0 to 300,000,000"
INTEGERS = {
    "all": [2**53, 2**63, -(2**63), 2**64 - 1, 2**53 - 1, 1e300, 0.1234567890123456789, -(2**53) - 1],
    "text": 'x\\"9007199254740993" 9007199254740993',
    "9007199254740993": {"": '\\\\"'},
}
VALUES: dict[str, Any] = {"integer": 2**53 + 1, "integers": INTEGERS}
"""The parameter `value` of a case."""


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_library(tmp_path_factory.mktemp("sdk"))


class Case(NamedTuple):
    """The body of an action, and how its execution ends: `end` is the JSON of its result, or the begin of its error."""

    code: str
    status: str
    end: Any
    attempts: int = 1


def completes(code: str, result: Any, attempts: int = 1) -> Case:
    return Case(code, "completed", result, attempts)


def fails(code: str, error: str, attempts: int = 2) -> Case:
    """Return a case whose failure is retried, unless `attempts` says another number."""
    return Case(code, "failed", error, attempts)


def unstorable(code: str, message: str) -> Case:
    return fails(code, f"ResultNotStorable: {message}", 1)


def words(value: object) -> str:
    """Return the words in which the Python library refuses a result."""
    with pytest.raises(ResultNotStorable) as raised:
        result_encoding.encode(value, 262_144)
    return raised.value.message


def nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


def retried_once(thrown: str, message: str) -> Case:
    """Return a case of an error whose message the second attempt returns."""
    return completes(f"if (run.attempt === 1) throw {thrown}; return {json.dumps(message)};", message, 2)


CASES = {
    # results
    "undefined": completes("return undefined;", None),
    "undefined_property": completes("return { a: undefined, b: [undefined] };", {"b": [None]}),
    "date": completes("return new Date(0);", "1970-01-01T00:00:00.000Z"),
    "boxed": completes(
        "return [Object(1n), new Number(2), new String('s'), new Boolean(false)];", [1, 2, "s", False]
    ),
    "instance": completes("class A { x = 1; #y = 2; } return new A();", {"x": 1}),
    "no_prototype": completes("return Object.assign(Object.create(null), { a: 1 });", {"a": 1}),
    "odd_names": completes('return JSON.parse(\'{"__proto__": 1, "": 2}\');', {"__proto__": 1, "": 2}),
    "converted": completes("return { toJSON: (name) => [name] };", [""]),
    "same_twice": completes("const a = [1]; return { a, b: a };", {"a": [1], "b": [1]}),
    "bigint": completes("return [5n, -(2n ** 63n), 2n ** 64n - 1n];", [5, -(2**63), 2**64 - 1]),
    "large_float": completes("return [1e20, 1e300, 5e-324];", [1e20, 1e300, 5e-324]),
    "thenable": completes("return { then: (done) => done(7) };", 7),
    "larger_bigint": unstorable("return 10n ** 30n;", words(10**30)),
    "large_bigint": unstorable(
        "return [1, 2n ** 64n];",
        "the result at [1] is not JSON: Integer exceeds 64-bit range. Send it as text.",
    ),
    "nan": unstorable("return NaN;", words(float("nan"))),
    "infinity": unstorable(
        "return { a: [{ b: -Infinity }] };",
        "the result at a[0].b is NaN or Infinity, which JSON cannot represent.",
    ),
    "map": unstorable(
        "return new Map([[1, 2]]);", "the result is not JSON: Type is not JSON serializable: Map."
    ),
    "set": unstorable(
        "return { a: new Set() };", "the result at a is not JSON: Type is not JSON serializable: Set."
    ),
    "bytes": unstorable(
        "return new Uint8Array(2);", "the result is not JSON: Type is not JSON serializable: Uint8Array."
    ),
    "inner_promise": unstorable(
        "return [Promise.resolve(1)];",
        "the result at [0] is not JSON: Type is not JSON serializable: Promise.",
    ),
    "returned_error": unstorable(
        "return new Error('x');", "the result is not JSON: Type is not JSON serializable: Error."
    ),
    "returned_defer": unstorable(
        "return new Defer({ delay: 1 });", "the result is not JSON: Type is not JSON serializable: Error."
    ),
    "function": unstorable(
        "return () => 1;", "the result is not JSON: Type is not JSON serializable: function."
    ),
    "symbol": unstorable(
        "return { s: Symbol('x') };", "the result at s is not JSON: Type is not JSON serializable: symbol."
    ),
    "invalid_date": unstorable("return new Date('junk');", "the result is not JSON: Invalid Date."),
    "circle": unstorable(f"{CIRCLE} return a;", "the result at a[0] is not JSON: Recursion limit reached."),
    "too_deep": unstorable(
        "let a = 1; for (let i = 0; i < 300; i++) a = [a]; return a;", "the result at [0]"
    ),
    "deep": completes("let a = 1; for (let i = 0; i < 90; i++) a = [a]; return a;", nested(90)),
    "deeper": completes("let a = 1; for (let i = 0; i < 253; i++) a = [a]; return a;", nested(253)),
    "doubled": unstorable(
        "let a = [1]; for (let i = 0; i < 60; i++) a = [a, a]; return a;",
        "the result has more than 1,048,576 bytes.",
    ),
    "sparse": unstorable("return new Array(2 ** 32 - 1);", "the result has more than 1,048,576 bytes."),
    "surrogate": unstorable("return '\\ud800';", words("\ud800")),
    "surrogate_name": unstorable(
        "return { ['\\udc00']: 1 };", "the result is not JSON: str is not valid UTF-8"
    ),
    "nul": unstorable("return 'a\\0b';", words("a\0b")),
    "large": unstorable("return 'x'.repeat(300000);", words("x" * 300_000)),
    "getter": unstorable(
        "return { get a() { throw new Error('got'); } };", "the result is not JSON: Error: got"
    ),
    "bad_conversion": unstorable(
        "return [{ toJSON() { throw null; } }];", "the result at [0] is not JSON: null"
    ),
    "revoked": unstorable(
        "const r = Proxy.revocable({}, {}); r.revoke(); return [r.proxy];",
        "the result at [0] is not JSON: TypeError",
    ),
    "bad_then": fails("return { get then() { throw new TypeError('no then'); } };", "TypeError: no then"),
    # errors
    "throws_null": fails("throw null;", "Error: null"),
    "throws_undefined": fails("throw undefined;", "Error: undefined"),
    "throws_text": fails("throw 'text';", "Error: text"),
    "throws_object": fails("throw { a: 1 };", "Error: { a: 1 }"),
    "throws_symbol": fails("throw Symbol('q');", "Error: Symbol(q)"),
    "throws_bare": fails("throw Object.create(null);", "Error: [Object: null prototype] {}"),
    "throws_proxy": fails(f"{PROXY} throw proxy;", "Error: {}"),
    "throws_unprintable": fails(
        "throw { [Symbol.for('nodejs.util.inspect.custom')]() { throw 1; } };",
        "Error: <a value that cannot be printed>",
    ),
    "message_number": fails("const e = new Error('x'); e.message = 5; throw e;", "Error: 5"),
    "message_getter": fails(
        "throw Object.defineProperty(new RangeError('x'), 'message', { get() { throw 1; } });",
        "RangeError: undefined",
    ),
    "name_number": fails("const e = new TypeError('x'); e.name = 5; throw e;", "TypeError: x"),
    "name_empty": fails("const e = new Error('x'); e.name = ''; throw e;", "Error: x"),
    "name_long": fails("const e = new Error('x'); e.name = 'N'.repeat(600); throw e;", f"{'N' * 499}…: x"),
    "nameless_class": fails("throw new (class extends Error {})('mine');", "Error: mine"),
    "many_classes": fails(
        "let C = Error; for (let i = 0; i < 60; i++) C = class A extends C {}; throw new C('x');", "Error: x"
    ),
    "odd_constructor": fails(
        "class A extends Error {} A.prototype.constructor = null; throw new A('x');", "Error: x"
    ),
    "stack_object": fails("const e = new Error('x'); e.stack = { a: 1n }; throw e;", "Error: x"),
    "message_surrogate": fails("throw new NonRetryable('a\\ud800b');", "NonRetryable: a\ufffdb", 1),
    "message_cut_pair": fails("throw new NonRetryable('x'.repeat(15998) + '😀😀');", "NonRetryable: xxx", 1),
    "message_nul": fails("throw new NonRetryable('a\\0b');", "NonRetryable: a\ufffdb", 1),
    "message_control": fails("throw new NonRetryable('\\u0001'.repeat(100000));", "NonRetryable: \u0001", 1),
    "group": fails("throw new AggregateError([new Error('a')], 'agg');", "AggregateError: agg"),
    "group_final": fails(
        "throw new AggregateError([new Error('a'), new NonRetryable('b')], 'agg');", "AggregateError: agg", 1
    ),
    "group_nested": fails(
        "throw new AggregateError([new AggregateError([new NonRetryable('b')]), 1], 'agg');",
        "AggregateError: agg",
        1,
    ),
    "group_picky": fails(
        "throw new AggregateError([new Error('a'), new SyntaxError('b')], 'agg');", "AggregateError: agg", 1
    ),
    "group_deep": fails(
        "let e = new Error('a'); for (let i = 0; i < 100000; i++) e = new AggregateError([e], 'agg'); throw e;",
        "AggregateError: agg",
    ),
    "group_empty": fails("throw new AggregateError([], 'agg');", "AggregateError: agg"),
    "group_of_itself": fails(
        "const e = new AggregateError([1], 'agg'); e.errors.push(e); throw e;", "AggregateError: agg"
    ),
    "group_junk": fails(
        "const e = new AggregateError([], 'agg'); e.errors = { length: 2 ** 40 }; throw e;",
        "AggregateError: agg",
    ),
    "group_getter": fails(
        "throw Object.defineProperty(new AggregateError([], 'agg'), 'errors', { get() { throw 1; } });",
        "AggregateError: agg",
    ),
    "group_large": fails(
        "throw new AggregateError(Array.from({ length: 100000 }, () => new Error('x'.repeat(1000))), 'agg');",
        "AggregateError: agg",
    ),
    "group_retry": retried_once(
        "new AggregateError([new SyntaxError('s'), new Retry('busy', 0.01), new Retry('busy')], 'agg')",
        "second",
    ),
    "group_deferred": completes(
        "if (run.attempt === 1) throw new AggregateError([new Defer({ delay: 0 }, 'a'), new Defer({ delay: 0.01 }, 'b')]);"
        " return run.state;",
        "a",
        2,
    ),
    "group_half_deferred": fails(
        "throw new AggregateError([new Defer({ delay: 0 }), new NonRetryable('b')], 'agg');",
        "AggregateError: agg",
        1,
    ),
    # retries
    "retry_negative": fails(
        "throw new Retry('busy', -1);", f"Retry: busy. after {BOUNDS}, not -1. The retry policy decides when"
    ),
    "retry_text": fails(
        "throw new Retry('busy', '1');",
        f'Retry: busy. after {BOUNDS}, not "1". The retry policy decides when',
    ),
    "retry_nan": fails("throw new Retry('busy', NaN);", f"Retry: busy. after {BOUNDS}, not NaN."),
    "retry_infinity": fails(
        "throw new Retry('busy', Infinity);", f"Retry: busy. after {BOUNDS}, not Infinity."
    ),
    "retry_null": fails("throw new Retry('busy', null);", "Retry: busy"),
    "retry_twice": retried_once("new Retry('busy', 0.01)", "second"),
    # deferrals
    "defer": completes(
        "if (run.state === null) throw new Defer({ delay: 0 }, { a: 2n ** 60n }); return run.state;",
        {"a": 2**60},
        2,
    ),
    "defer_past": completes(
        "if (run.attempt === 1) throw new Defer({ until: new Date(0) }); return run.attempt;", 2, 2
    ),
    "defer_negative": fails("throw new Defer({ delay: -1 }, 1);", f"RangeError: delay {BOUNDS}, not -1"),
    "defer_text": fails("throw new Defer({ delay: '1' });", "RangeError: delay must be a number of seconds"),
    "defer_junk": fails(
        "throw new Defer({ until: new Date('junk') });",
        "RangeError: until must be a Date between the years 1970 and 8999, not Invalid Date",
    ),
    "defer_until_text": fails(
        "throw new Defer({ until: '2030-01-01' });",
        'RangeError: until must be a Date between the years 1970 and 8999, not "2030-01-01"',
    ),
    "defer_far": fails(
        "throw new Defer({ until: new Date(8.64e15) });", "RangeError: until must be a Date between"
    ),
    "defer_both": fails(
        "throw new Defer({ delay: 1, until: new Date() });",
        "TypeError: Defer takes exactly one of until and delay",
    ),
    "defer_neither": fails("throw new Defer({});", "TypeError: Defer takes exactly one of until and delay"),
    "defer_null": fails("throw new Defer(null);", "TypeError: "),
    "defer_nan": unstorable(
        "throw new Defer({ delay: 0 }, [NaN]);", "the state of Defer at [0] is NaN or Infinity"
    ),
    "defer_thrower": unstorable(
        "throw new Defer({ delay: 0 }, { toJSON() { throw new Error('no'); } });",
        "the state of Defer is not JSON: Error: no",
    ),
    "defer_large": unstorable(
        "throw new Defer({ delay: 0 }, 'x'.repeat(400000));",
        "the state of Defer has 400,002 bytes; at most 262,144 are stored.",
    ),
    # output
    "log_pair": completes("run.log('x'.repeat(15999) + '😀y'); run.log('after'); return 1;", 1),
    "log_surrogate": completes("run.log('bad \\ud800'); run.log('good'); return 1;", 1),
    "log_nul": completes("run.log('a\\0b'); return 1;", 1),
    "log_control": completes("run.log('\\u0001'.repeat(100000)); return 1;", 1),
    "log_values": completes(
        "for (const v of [5, null, undefined, Symbol('s'), 5n, { a: 1 }, Object.create(null)]) run.log(v); return 1;",
        1,
    ),
    "log_proxy": completes(f"{PROXY} run.log(proxy); return 1;", 1),
    "log_stream": fails("run.log('a', 'junk');", "RangeError: a stream is stdout, stderr or log, not junk"),
    "log_much": completes("for (let i = 0; i < 3000; i++) run.log(`line ${i}`); return 1;", 1),
    "progress_pair": completes("run.progress(0.5, 'x'.repeat(15999) + '😀'); return 1;", 1),
    "progress_large": completes(
        "for (let i = 0; i < 60; i++) run.progress(0.5, '\\u0001'.repeat(16000)); return 1;", 1
    ),
    "progress_value": completes("run.progress(1, { a: 1 }); return 1;", 1),
    "progress_nan": fails("run.progress(NaN);", "RangeError: progress is a number from 0 to 1, not NaN"),
    "progress_text": fails("run.progress('0.5');", "RangeError: progress is a number from 0 to 1, not 0.5"),
    "late_output": completes("setTimeout(() => { run.log('late'); run.progress(0.9); }, 500); return 1;", 1),
    # calls of a client within an action
    "client_nan": fails(
        "await new Client().start('odd.play', { n: NaN });",
        "NotStorable: the parameters at n is NaN or Infinity",
    ),
    "client_payload": fails(
        "await new Client().publish('odd.x', new Map());",
        "NotStorable: the payload is not JSON: Type is not JSON serializable: Map.",
    ),
    "client_options": fails(
        "await new Client().start('odd.play', {}, { delay: Infinity });",
        "NotStorable: the message at delay is NaN or Infinity",
    ),
    "client_thrower": fails(
        "await new Client().start('odd.play', { a: { toJSON() { throw 1; } } });",
        "NotStorable: the parameters at a is not JSON: 1",
    ),
    "client_key": fails("await new Client().start('odd.play', {}, { key: 'a\\nb' });", "TypeError: "),
    "client_server": fails(
        "new Client({ server: 'localhost:8000' });",
        'TypeError: "localhost:8000" is not the address of a server.',
    ),
    # integers
    "integer": completes("return p.value;", 2**53 + 1),
    "integers": completes(
        "if (typeof p.value.all[0] + typeof p.value.all[4] !== 'bigintnumber') throw p; return p.value;",
        INTEGERS,
    ),
}
EXPECTED_LINES = {
    "log_pair": ["x" * 15999 + "…", "…😀y", "after"],
    "log_surrogate": ["bad \ufffd", "good"],
    "log_values": ["5", "null", "undefined", "Symbol(s)", "5n", "{ a: 1 }", "[Object: null prototype] {}"],
    "log_proxy": ["{}"],
    "late_output": [],
}
"""The stored lines of a case. All cases with `log_` have some."""
ENDED = """
select id, status, attempt, result::text as result, error ->> 'type' as type, error ->> 'message' as message
from execution left join result on execution_id = id where id = any($1)
"""


async def ends_of(house: Installation, folder: Path, built: Path) -> dict[str, dict[str, Any]]:
    """Run all cases on a worker of the library. Return the rows of the executions by case."""
    (folder / "pack.yaml").write_text(PACK)
    await house.start(*load(folder), **AS_USED)
    bodies = ",\n".join(f"  {name}: async (p, run) => {{ {case.code} }}" for name, case in CASES.items())
    (folder / "worker.mjs").write_text(WORKER % bodies)
    (folder / "node_modules").mkdir()
    (folder / "node_modules/penstock-sdk").symlink_to(built)
    port, stop = free_port(), Stop()
    serving = asyncio.create_task(serve(house.settings(api_port=port, api_access="open", **AS_USED), stop))
    await asyncio.wait({serving, asyncio.ensure_future(stop.began.wait())}, return_when="FIRST_COMPLETED")
    environment = {**os.environ, "PENSTOCK_SERVER": f"http://127.0.0.1:{port}"}
    worker = await asyncio.create_subprocess_exec("node", "worker.mjs", cwd=folder, env=environment)
    try:
        parameters = {name: {"case": name, "value": VALUES.get(name)} for name in CASES}
        ids = {await house.client.start("odd.play", parameters[name]): name for name in CASES}
        for _ in range(200):
            rows = await house.rows(ENDED, list(ids))
            if worker.returncode is not None or all(row["status"] in FINAL for row in rows):
                break
            await asyncio.sleep(0.3)
        return {ids[row["id"]]: dict(row) for row in rows}
    finally:
        if worker.returncode is None:
            worker.kill()
        await worker.wait()
        stop.ask()
        await serving


def end_of(row: dict[str, Any], case: Case) -> Case:
    """Return a case with the end that a row has. Of an error, it has as many characters as the case names."""
    if row["status"] == "completed":
        end = orjson.loads(row["result"])
    else:
        end = f"{row['type']}: {row['message']}"
        end = end[: len(case.end)] if isinstance(case.end, str) else end
    return Case(case.code, row["status"], end, row["attempt"])


async def test_attempt_has_one_end_whatever_its_code_does(
    built: Path, house: Installation, tmp_path: Path
) -> None:
    ends = await ends_of(house, tmp_path, built)
    wrong = {name: end for name, case in CASES.items() if (end := end_of(ends[name], case)) != case}
    assert wrong == {}
    [[traceback]] = await house.rows(
        "select error ->> 'traceback' from result where execution_id = $1", ends["group_final"]["id"]
    )
    assert "[errors 1] Error: a\n        at " in traceback
    assert "[errors 2] NonRetryable: b\n        at " in traceback
    await house.quiet()
    rows = await house.rows(
        "select execution_id, line from log_line where stream = 'log' order by execution_id, seq"
    )
    lines: dict[str, list[str]] = {name: [] for name in CASES}
    names = {end["id"]: name for name, end in ends.items()}
    for row in rows:
        lines[names[row["execution_id"]]].append(row["line"])
    assert {name: lines[name] for name in EXPECTED_LINES} == EXPECTED_LINES
    assert len(lines["log_much"]) == 3000
    assert "".join(lines["log_control"]).replace("…", "") == "\x01" * 100_000
