"""The library for Node: it is built from its lock file, is small, and conforms."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any, Literal

import pytest

from penstock import action, load
from penstock.client.generated_types.typescript import module_of
from penstock.language.schemas import parameters_schema, schema_differences
from penstock.language.schemas.budget import Budget
from penstock.language.schemas.validator import Validator
from penstock.operate.definitions import listed as listed_in
from penstock.service.assembly import Stop
from penstock.service.embedded.cluster import free_port
from penstock_api.main import serve
from tests.flows.installation import Installation
from tests.penstock.client.generated_types.test_module import ALL, listed
from tests.penstock.language.schemas.directed_cases import KEYWORDS, Values, document
from tests.sdk.conformance import ROOT, faults
from tests.sdk.library import SDK, build_library

pytestmark = pytest.mark.skipif(shutil.which("npm") is None, reason="this machine has no Node")


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_library(tmp_path_factory.mktemp("sdk"))


def test_worker_of_the_library_conforms(built: Path) -> None:
    assert faults("node", str(built / "dist/test/conformance.js")) == {}


def test_worker_of_the_library_survives_its_gateways(built: Path) -> None:
    words = ["node", "--test", "dist/test/worker.test.js"]
    done = subprocess.run(words, cwd=built, capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stdout


def test_package_is_small_and_depends_on_nothing(built: Path) -> None:
    words = ["npm", "pack", "--dry-run", "--json"]
    done = subprocess.run(words, cwd=built, capture_output=True, text=True, timeout=120, env=os.environ)
    [package] = json.loads(done.stdout)
    assert package["size"] < 100_000
    assert not json.loads((SDK / "package.json").read_text()).get("dependencies")


def test_versions_of_the_library_agree() -> None:
    stated = json.loads((SDK / "package.json").read_text())["version"]
    [in_code] = re.findall(r'VERSION = "(.*)"', (SDK / "src/worker.ts").read_text())
    [ours] = re.findall(r'^version = "(.*)"', (ROOT / "pyproject.toml").read_text(), re.MULTILINE)
    assert stated == in_code == ours


def test_lock_file_names_no_host() -> None:
    assert "://" not in (SDK / "package-lock.json").read_text()


@action(pack="shop")
async def bare() -> None: ...


@dataclass
class Reserved:
    sku: str
    left: int


@action(pack="stock")
async def reserve(sku: str, count: int = 1, where: Literal["north", "south"] = "north") -> Reserved:
    return Reserved(sku, 10 - count)


USES = """
import { Client, actionsOf } from "../index.js";
import type { Actions } from "./generated.js";

const client = new Client<Actions>();
const action = actionsOf<Actions>();

export async function uses() {
  const charged = await client.run("shop.charge", { order: 7, items: [{ sku: "a" }], key: "k", mode: "fast" });
  const count: number | undefined = charged.count;
  await client.start("shop.charge", { order: 7, items: [], key: "k", to: { street: "s" } }, { delay: 2 });
  await client.run("shop.bare");
  // @ts-expect-error: a required parameter is missing
  await client.run("shop.charge", { items: [], key: "k" });
  // @ts-expect-error: nothing is given
  await client.run("shop.charge");
  // @ts-expect-error: a text for a number
  await client.start("shop.charge", { order: "7", items: [], key: "k" });
  // @ts-expect-error: no such parameter
  await client.start("shop.charge", { order: 7, items: [], key: "k", colour: "red" });
  // @ts-expect-error: no such choice
  await client.start("shop.charge", { order: 7, items: [], key: "k", mode: "medium" });
  // @ts-expect-error: no such action
  await client.run("shop.change", {});
  // @ts-expect-error: a number for a text
  const sku: number = charged.sku;
  return [count, sku];
}

export const works = [
  action("shop.charge", async ({ order, items }) => ({ sku: items[0]!.sku, count: order })),
  // @ts-expect-error: another result
  action("shop.charge", async () => ({ count: 7 })),
  // @ts-expect-error: no such parameter
  action("shop.charge", async ({ colour }) => ({ sku: colour })),
];

const any = new Client();
export async function untyped(): Promise<number> {
  await any.start("shop.anything", { a: 1 }, { priority: 2 });
  return (await any.run<{ n: number }>("shop.anything")).n;
}
"""
SCHEMA_USES = """
import { action, t, type ValueOf } from "../index.js";

const parameters = t.object({
  customer: t.string(),
  amount: t.number({ default: 10 }),
  note: t.optional(t.nullable(t.string())),
  kind: t.choice("a", "b"),
  lines: t.array(t.object({ sku: t.string() })),
});
type Parameters = ValueOf<typeof parameters>;
const sent: Parameters = { customer: "x", amount: 1, kind: "b", lines: [{ sku: "s" }], note: null };
// @ts-expect-error: no such choice
const other: Parameters = { ...sent, kind: "c" };
// @ts-expect-error: a required parameter is missing
const short: Parameters = { customer: "x", amount: 1, kind: "a" };

const result = t.object({ count: t.integer() });
export const works = [
  action("billing.send", { parameters, result }, async ({ customer, amount, note, kind }, run) => {
    const text: string = customer;
    const number: number = amount;
    const maybe: string | null | undefined = note;
    const choice: "a" | "b" = kind;
    // @ts-expect-error: a text for a number
    const wrong: number = customer;
    run.log(`${text} ${number} ${maybe} ${choice} ${wrong}`);
    return { count: 1 };
  }),
  // @ts-expect-error: another result
  action("billing.send", { parameters, result }, async () => ({ count: "1" })),
  // @ts-expect-error: no such parameter
  action("billing.send", { parameters }, async ({ colour }) => ({ count: colour })),
  action("x.result", { result: t.integer() }, () => 3),
  action("x.json", { parameters: t.json<{ n: number }>({ type: "object" }) }, async ({ n }) => n + 1),
  action("x.record", { parameters: t.object({ m: t.record(t.integer()) }) }, async ({ m }) => m["a"] ?? 0),
  action("x.plain", async ({ n }: { n: number }) => n),
];
export default [other, short];
"""
SHORT_FORM = {
    "customer": {"type": "string", "required": True},
    "amount": {"type": "number", "default": 10},
    "note": {"type": ["string", "null"]},
    "kind": {"enum": ["a", "b"], "required": True},
    "lines": {
        "type": "array",
        "items": {"type": "object", "properties": {"sku": {"type": "string"}}, "required": ["sku"]},
        "required": True,
    },
    "counts": {"type": "object", "additionalProperties": {"type": "integer"}, "required": True},
}
"""The parameters of a definition in YAML."""
PRINTS_SCHEMA = """
import { t } from "./dist/index.js";
console.log(JSON.stringify(t.object({
  customer: t.string({ description: "the name" }),
  amount: t.number({ default: 10 }),
  note: t.optional(t.nullable(t.string())),
  kind: t.choice("b", "a"),
  lines: t.array(t.object({ sku: t.string() })),
  counts: t.record(t.integer()),
})));
"""
SCHEMAS = 300
"""Random schemas of which valid values are tried."""


def compiled(built: Path, **files: str) -> str:
    """Compile files beside the tests of the library. Return what the compiler says."""
    for name, text in files.items():
        (built / f"src/test/{name}.ts").write_text(text)
    done = subprocess.run(["npx", "tsc", "--noEmit"], cwd=built, capture_output=True, text=True, timeout=300)
    for name in files:
        (built / f"src/test/{name}.ts").unlink()
    return done.stdout + done.stderr


def test_generated_types_refuse_wrong_uses(built: Path) -> None:
    assert compiled(built, generated=module_of(listed(*ALL, bare)), uses=USES) == ""


def test_schemas_of_an_action_check_its_function(built: Path) -> None:
    assert compiled(built, schemas=SCHEMA_USES) == ""


def test_built_schema_is_that_of_the_short_form(built: Path) -> None:
    words = ["node", "--input-type=module", "--eval", PRINTS_SCHEMA]
    printed = subprocess.run(words, cwd=built, capture_output=True, text=True, timeout=60, check=True).stdout
    offered = parameters_schema(json.loads(printed))
    assert list(schema_differences(parameters_schema(SHORT_FORM), offered)) == []


def test_generated_types_take_every_valid_value(built: Path) -> None:
    """The oracle is the validator: what it takes for a random schema, the compiler takes for the type of the schema."""
    chance = Random(7)
    definitions: list[dict[str, Any]] = []
    lines = ['import type { Actions } from "./generated.js";']
    while len(definitions) < SCHEMAS:
        schema = document(chance, chance.choice(sorted(KEYWORDS)))
        validator, made = Validator(schema), Values(chance, schema)
        ref = f"s.n{len(definitions)}"
        values = [value for _ in range(12) if validator.fits(value := made.value(), Budget())]
        if values:
            definitions.append({"ref": ref, "enabled": True, "definition": {"result": schema}})
            lines += [
                f'export const v{len(definitions)}_{n}: Actions["{ref}"]["result"] = {json.dumps(value)};'
                for n, value in enumerate(values)
            ]
    assert compiled(built, generated=module_of(definitions), values="\n".join(lines)) == ""


PAGE = ROOT / "docs/how-to/typescript.md"
FENCE = re.compile(r'^```typescript title="([\w.]+)"\n(.*?)^```$', re.M | re.S)


def built_program(built: Path, page: Path, folder: Path, definitions: list[dict[str, Any]]) -> dict[str, str]:
    """Save the programs of a page in a folder of their own, beside the types of these definitions, and compile them. Return
    their texts."""
    programs = dict(FENCE.findall(page.read_text()))
    for name, text in {"actions.ts": module_of(definitions), **programs}.items():
        (folder / name).write_text(text)
    (folder / "package.json").write_text('{"type": "module"}')
    (folder / "node_modules/@types").mkdir(parents=True)
    (folder / "node_modules/penstock-sdk").symlink_to(built)
    (folder / "node_modules/@types/node").symlink_to(built / "node_modules/@types/node")
    (folder / "node_modules/undici-types").symlink_to(built / "node_modules/undici-types")
    words = [str(built / "node_modules/.bin/tsc"), "--module", "nodenext", "--target", "es2022", "--strict"]
    done = subprocess.run([*words, *programs], cwd=folder, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout
    return programs


async def test_page_keeps_its_promises(built: Path, house: Installation, tmp_path: Path) -> None:
    [pack] = re.findall(r"^```yaml\n# (billing/pack.yaml\n.*?)^```$", PAGE.read_text(), re.M | re.S)
    (tmp_path / "billing").mkdir()
    (tmp_path / "billing/pack.yaml").write_text(pack.partition("\n")[2])
    definitions = load(tmp_path / "billing")
    await house.start(*definitions)
    programs = built_program(built, PAGE, tmp_path, await listed_in(house.session, ("action",)))
    [promised] = re.findall(r"// (\{.*\})$", programs["start.ts"], re.M)
    port, stop = free_port(), Stop()
    serving = asyncio.create_task(serve(house.settings(api_port=port, api_access="open"), stop))
    await asyncio.wait({serving, asyncio.ensure_future(stop.began.wait())}, return_when="FIRST_COMPLETED")
    environment = {**os.environ, "PENSTOCK_SERVER": f"http://127.0.0.1:{port}"}
    worker = await asyncio.create_subprocess_exec("node", "worker.js", cwd=tmp_path, env=environment)
    try:
        start = await asyncio.create_subprocess_exec(
            "node", "start.js", cwd=tmp_path, env=environment, stdout=asyncio.subprocess.PIPE
        )
        async with asyncio.timeout(60):
            printed, _ = await start.communicate()
        assert json.loads(printed) == json.loads(promised)
        lines = await house.rows("select line from log_line")
        assert "an invoice for Ada" in {row["line"] for row in lines}
    finally:
        worker.terminate()
        await worker.wait()
        stop.ask()
        await serving
    assert worker.returncode == 0


def test_worker_of_the_page_of_types_is_checked(built: Path, tmp_path: Path) -> None:
    """A program that the types do not fit is not compiled."""
    page = ROOT / "docs/how-to/typed-calls.md"
    built_program(built, page, tmp_path, listed(reserve))
