// Graphile Worker (Node.js): two processes, 24 jobs at once, a local queue of 500 and completions in batches without delay, as
// its page on performance has it; added 1,000 a call. It has no workflows, keeps no results, and deletes what is done.
//
// `node graphile.mjs client` takes the orders of `bench.client`, `node graphile.mjs worker` runs the jobs.
import { openSync, readFileSync, writeSync } from "node:fs";
import { createRequire } from "node:module";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";

const require = createRequire(process.env.BENCH_NODE_FOLDER + "/");
const { Logger, makeWorkerUtils, run } = require("graphile-worker");
const about = process.env.BENCH_NODE_FOLDER + "/node_modules/graphile-worker/package.json";
const { version } = JSON.parse(readFileSync(about)); // which the package itself does not give out

const connectionString = process.env.BENCH_DATABASE_URL;
const logger = new Logger(() => (level, message) => level === "error" && console.error(message));
const now = () => (performance.timeOrigin + performance.now()) / 1000; // epoch seconds
const CALLERS = 100;
const BATCH = 1000;

async function work() {
  const marks = openSync(process.env.BENCH_MARKS, "r+");
  const mark = Buffer.alloc(16);
  const noop = async ({ index }) => {
    mark.writeDoubleLE(now(), 0);
    mark.writeDoubleLE(now(), 8);
    writeSync(marks, mark, 0, 16, 16 * index);
  };
  const worker = {
    connectionString,
    concurrentJobs: 24,
    maxPoolSize: 25,
    localQueue: { size: 500 },
    completeJobBatchDelay: 0,
    failJobBatchDelay: 0,
  };
  const runner = await run({ preset: { worker }, logger, taskList: { noop } }); // it stops on SIGTERM
  await runner.promise;
}

let utils;
const send = (index) => utils.addJob("noop", { index });
const command = [process.execPath, process.argv[1], "worker"];

const orders = {
  describe: async () => ({
    version,
    processes: { worker: [command, command] },
    recorded: null,
    orders: ["send", "send_many", "callers", "pace"],
  }),
  prepare: async () => {
    utils = await makeWorkerUtils({ connectionString, logger, maxPoolSize: 10 });
    await utils.migrate();
  },
  connect: async () => {},
  callers: async ({ first, count }) => {
    const took = new Array(count);
    let next = first;
    const caller = async () => {
      while (next < first + count) {
        const index = next++;
        const began = now();
        await send(index);
        took[index - first] = now() - began;
      }
    };
    await Promise.all(Array.from({ length: CALLERS }, caller));
    return took;
  },
  send_many: async ({ first, count }) => {
    for (let start = first; start < first + count; start += BATCH) {
      const size = Math.min(BATCH, first + count - start);
      await utils.addJobs(
        Array.from({ length: size }, (_, k) => ({ identifier: "noop", payload: { index: start + k } })),
      );
    }
  },
  pace: async ({ first, count, rate }) => {
    const [sent, done] = [new Array(count), new Array(count)];
    const began = performance.now();
    const one = async (k) => {
      sent[k] = now();
      await send(first + k);
      done[k] = now();
    };
    const all = [];
    for (let k = 0; k < count; k++) {
      const early = began + (1000 * k) / rate - performance.now();
      if (early > 0) await sleep(early);
      all.push(one(k));
    }
    await Promise.all(all);
    return { sent, done };
  },
  close: () => utils.release(),
};

async function obey() {
  for await (const line of createInterface({ input: process.stdin })) {
    const { order, ...given } = JSON.parse(line);
    const began = now();
    const answer = await orders[order](given);
    process.stdout.write(JSON.stringify({ began, given: answer ?? null }) + "\n");
  }
}

await (process.argv[2] === "worker" ? work() : obey());
