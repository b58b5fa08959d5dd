/** The work of tests/chaos/work.py on Node. Run as `node work.mjs worker --name NAME --port PORT --concurrency SLOTS`. */

import { appendFileSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";

const { Defer, Worker, action } = await import(join(process.env.CHAOS_LIBRARY, "dist/index.js"));
const { values } = parseArgs({
  args: process.argv.slice(3),
  options: { name: { type: "string" }, port: { type: "string" }, module: { type: "string" }, concurrency: { type: "string" } },
});

/** Runs a piece that must run at most once, and writes down that it has begun. */
async function once({ n, seconds }) {
  appendFileSync(process.env.CHAOS_STARTS, `${n}\n`);
  await sleep(seconds * 1000);
  return n + 5;
}

/** Returns a function that sleeps before it returns what `result` makes of the parameters. */
const after = (ms, result) => async (parameters) => {
  await sleep(ms);
  return result(parameters);
};

const work = {
  double: after(50, ({ n }) => 2 * n),
  square: after(20, ({ n }) => n * n),
  limited: after(10, ({ n }) => n + 1),
  ordered: after(300, ({ n, customer }) => n + customer),
  flaky: async ({ n }, run) => {
    await sleep(200);
    if (run.attempt <= 2) throw new Error(`attempt ${run.attempt} fails`);
    return n + 2;
  },
  later: async ({ n }, run) => {
    if (run.state === null) throw new Defer({ delay: 0.3 }, { n });
    return run.state.n + 3;
  },
  total: after(200, ({ numbers }) => numbers.reduce((sum, number) => sum + number, 0)),
  react: after(500, ({ n }) => n + 4),
  tick: async () => "ticked",
  once,
  once_in_a_thread: once,
  once_in_a_process: once,
  in_line: after(400, ({ n, line }) => n + line),
};

const worker = new Worker({
  actions: Object.entries(work).map(([name, run]) => action(`chaos.${name}`, run)),
  name: values.name,
  slots: Number(values.concurrency),
  grace: Number(process.env.PENSTOCK_GRACE),
});
const health = createServer((_, answer) => answer.end()).listen(Number(values.port), "127.0.0.1");
await worker.run();
health.close();
process.exit(0);
