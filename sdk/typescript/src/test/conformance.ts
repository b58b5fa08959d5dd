/** The actions of `penstock worker-conformance`. */

import { setTimeout as sleep } from "node:timers/promises";
import { Defer, NonRetryable, Retry, Worker, action, type Run } from "../index.js";

type Step = Record<string, any>;

class Named extends Error {
  constructor(type: string, message: string) {
    super(message);
    this.name = type;
  }
}

function failure({ type, message, retryable, retry_after }: Step): Error {
  const error = retryable === false ? new NonRetryable(message) : retry_after ? new Retry(message, retry_after) : new Named(type, message);
  error.name = type;
  return error;
}

async function play({ steps, secret = "" }: { steps: Step[]; secret?: string }, run: Run): Promise<unknown> {
  const first = run.attempt === 1;
  for (const step of steps) {
    const [kind, value] = Object.entries(step)[0]!;
    if (kind === "return") return value;
    if (kind === "large") return "x".repeat(value);
    if (kind === "return_run") return { execution: run.execution, attempt: run.attempt, action: run.action, tenant: run.tenant };
    if (kind === "return_state") return run.state;
    if (kind === "return_attempt") return run.attempt;
    if (kind === "log") run.log(value);
    if (kind === "log_secret") run.log(`the secret is ${secret}`);
    if (kind === "progress") run.progress(value[0], value[1]);
    if (kind === "sleep" || (kind === "sleep_first" && first)) await sleep(value * 1000, undefined, { signal: run.signal });
    if (kind === "stubborn" || (kind === "stubborn_first" && first)) await sleep(value * 1000);
    if (kind === "fail") throw failure(value);
    if (kind === "fail_with_secret") throw new NonRetryable(`with ${secret}`);
    if (kind === "fail_until" && run.attempt < value) throw new Named("ConnectionError", `attempt ${run.attempt} failed`);
    if (kind === "defer_once" && run.state === null) throw new Defer({ delay: value[0] }, value[1]);
    if (kind === "crash_first" && first) {
      await sleep(500); // what was logged is sent first
      process.exit(7);
    }
  }
  return null;
}

const actions = ["play", "once", "brief"].map((name) => action(`conformance.${name}`, play));
const worker = new Worker({
  actions,
  slots: Number(process.env["PENSTOCK_SLOTS"]),
  grace: Number(process.env["PENSTOCK_GRACE"]),
});
await worker.run();
process.exit(0);
