import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { Calls, type CallOptions } from "./calls.js";
import type { ActionTypes, Ref } from "./client.js";
import { refusedEnd, returned, thrown } from "./ends.js";
import { NoAnswer, OutputDropped, Refused, SchemaDiffers } from "./errors.js";
import { Written, encode } from "./json.js";
import type { BeatAnswer, End, Json, Taken, TakenAttempt, Welcome } from "./protocol.js";
import { Run } from "./run.js";
import { withDefaults, type Schema } from "./schemas.js";
import { textOf } from "./texts.js";

export const VERSION = "0.1.0";
const WAIT_S = 20;
const FLUSH_MS = 200;
const BYE_MS = 3_000;
const REFUSED_MS = 1_000;
const BATCH = 100;
const OUTPUT_BYTES = 48 * 1024;
/** Milliseconds that the lines and reports of an ended action have, if the gateways answer other calls. */
const LAST_OUTPUT_MS = 15_000;
/** A longer timer of Node fires at once. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;
const SCHEMAS_BYTES = 128 * 1024;

/** An action: a ref, the function that runs it, and the schemas that the function was written for. */
export interface Action {
  ref: string;
  run: (parameters: never, run: Run) => unknown;
  parameters?: Schema<any>;
  result?: Schema<any>;
}

/** Returns an action for a worker. Its result is JSON, or a promise of it. */
export function action<P>(ref: string, run: (parameters: P, run: Run) => unknown): Action;
/** Returns an action whose function is checked against schemas. A gateway compares them with those of the definition. */
export function action<P = Record<string, Json>, R = unknown>(
  ref: string,
  schemas: { parameters?: Schema<P>; result?: Schema<R> },
  run: (parameters: P, run: Run) => NoInfer<R> | Promise<NoInfer<R>>,
): Action;
export function action(ref: string, first: object, second?: Action["run"]): Action {
  return second === undefined ? { ref, run: first as Action["run"] } : { ref, ...first, run: second };
}

/** Returns `action` for the actions of an installation: it checks refs, parameters and results. */
export function actionsOf<A extends ActionTypes>() {
  return <R extends Ref<A>>(
    ref: R,
    run: (parameters: A[R]["parameters"], run: Run) => A[R]["result"] | Promise<A[R]["result"]>,
  ): Action => ({ ref, run: run as Action["run"] });
}

export interface WorkerOptions {
  /** Addresses of gateways, separated by commas. Default: PENSTOCK_SERVER. */
  server?: string;
  /** A token of scope `work`. Default: PENSTOCK_TOKEN. */
  token?: string;
  actions: Action[];
  /** Default: PENSTOCK_ROUTES, or `default`. */
  routes?: string[];
  /** Default: PENSTOCK_NAME, or the process id. */
  name?: string;
  labels?: Record<string, string>;
  /** The number of attempts at once. Default: 16. */
  slots?: number;
  /** Seconds that running attempts may go on after a request to stop. Default: 30. */
  grace?: number;
  /** Called with what goes wrong between the worker and its gateways. Default: its name and message on console.error. */
  onError?: (error: unknown) => void;
  /** Called with a line of text when a session has begun. Default: console.error. */
  onBegin?: (text: string) => void;
}

function printed(error: unknown): void {
  console.error(error instanceof Error ? `${error.name}: ${error.message}` : textOf(error));
}

type Reason = "cancelled" | "timed_out" | "lost" | "given_up";

interface Held {
  taken: TakenAttempt;
  run: Run;
  abort: AbortController;
  reason?: Reason;
  /** Aborted when the attempt is no longer this worker's, or has ended: its writes end then. */
  lost: AbortController;
  flushing: Promise<void>;
  /** The timer of the next flush, if one is set. */
  flushTimer?: NodeJS.Timeout | undefined;
  hasDropped: boolean;
  done: Promise<void>;
}

/** A worker. `run()` takes work until it is asked to stop. */
export class Worker {
  private readonly calls: Calls;
  private readonly actions: Map<string, Action>;
  private readonly held = new Map<string, Held>();
  private readonly stopping = new AbortController();
  private readonly ended = new AbortController();
  private readonly slots: number;
  private welcome!: Welcome;
  private answeredAt = 0;
  private isSilent = false;
  private draining = false;
  private beats = new AbortController();
  private freed: () => void = () => {};
  private beginning: Promise<void> | undefined;

  constructor(private readonly options: WorkerOptions) {
    const server = options.server ?? process.env["PENSTOCK_SERVER"] ?? "";
    this.calls = new Calls(server, options.token ?? process.env["PENSTOCK_TOKEN"]);
    this.actions = new Map(options.actions.map((entry) => [entry.ref, entry]));
    this.slots = options.slots ?? 16;
  }

  /** Takes work and runs it until `stop()`, SIGTERM or SIGINT. Running attempts have the grace period to end. */
  async run(): Promise<void> {
    const stop = () => this.stop();
    process.on("SIGTERM", stop).on("SIGINT", stop);
    try {
      await this.begin();
      if (this.welcome === undefined) return;
      const beating = this.beatAll();
      beating.catch(stop);
      await this.takeAll();
      await this.drain();
      this.ended.abort();
      this.beats.abort();
      await beating;
      await this.send("bye", {}, { until: performance.now() + BYE_MS }).catch(this.report);
    } catch (error) {
      // No heartbeat follows, so other workers get the attempts.
      for (const held of this.held.values()) this.end(held, "lost");
      throw error;
    } finally {
      this.ended.abort();
      this.beats.abort();
      process.off("SIGTERM", stop).off("SIGINT", stop);
    }
  }

  /** Takes no more work, and lets `run()` return once the running attempts have ended. */
  stop(): void {
    this.stopping.abort();
    this.freed();
  }

  private readonly report = (error: unknown): void => {
    notify(this.options.onError ?? printed, error);
  };

  private send<T>(name: string, message: unknown, options: CallOptions = {}): Promise<T> {
    const headers = name === "hello" ? {} : { "penstock-session": this.welcome.session };
    return this.calls.call<T>(`work/${name}`, message, { ...options, headers });
  }

  /** Begins a session, unless this worker stops. The attempts of an earlier one are lost. */
  private begin(): Promise<void> {
    this.beginning ??= this.hello()
      .catch((error) => {
        if (!this.stopping.signal.aborted) throw error;
      })
      .finally(() => (this.beginning = undefined));
    return this.beginning;
  }

  private async hello(): Promise<void> {
    for (const held of this.held.values()) this.end(held, "lost");
    const message = {
      protocol: 1,
      name: this.options.name ?? process.env["PENSTOCK_NAME"] ?? `node-${process.pid}`,
      language: "typescript",
      sdk: `penstock-sdk/${VERSION} (node ${process.versions.node})`,
      routes: this.options.routes ?? (process.env["PENSTOCK_ROUTES"] ?? "default").split(","),
      labels: this.options.labels ?? {},
      actions: this.offered(),
      slots: this.slots,
    };
    const welcome = await this.send<Welcome>("hello", message, { signal: this.stopping.signal });
    this.welcome = welcome;
    // A gateway of an earlier version has no differences.
    for (const { action, part, text } of welcome.differences ?? []) {
      this.report(new SchemaDiffers(`${action}, ${part}: ${text}`));
    }
    this.answeredAt = performance.now();
    this.isSilent = false;
    const actions = message.actions.map((action) => action.ref).join(", ");
    notify(this.options.onBegin ?? console.error, `worker ${message.name} serves ${message.routes.join(", ")}: ${actions}`);
  }

  /** Returns the actions of the hello. Schemas are left out once they would make it too large for a gateway. */
  private offered(): { ref: string }[] {
    let left = SCHEMAS_BYTES;
    return [...this.actions.values()].map(({ ref, parameters, result }) => {
      const schemas = { ...(parameters && { parameters }), ...(result && { result }) };
      left -= Buffer.byteLength(encode(schemas, `the schemas of ${ref}`));
      return left < 0 ? { ref } : { ref, ...schemas };
    });
  }

  private async takeAll(): Promise<void> {
    const { signal } = this.stopping;
    while (!signal.aborted) {
      const slots = this.slots - this.held.size;
      if (slots < 1) {
        await new Promise<void>((free) => (this.freed = free));
        continue;
      }
      const wait = Math.min(WAIT_S, this.welcome.wait_at_most);
      // A slot that becomes free meanwhile is offered by the next take: this one ends as soon as there is work.
      const message = { request: randomUUID(), slots, wait };
      const { session } = this.welcome;
      try {
        const again = (body: unknown) => ({ ...(body as object), again: true });
        const taken = await this.send<Taken>("take", message, { wait: wait * 1000, signal, again });
        for (const attempt of taken.attempts) this.play(attempt);
        if (taken.drain && taken.attempts.length === 0) await sleep(1_000, undefined, { signal });
      } catch (error) {
        if (signal.aborted) return;
        if (!(error instanceof Refused)) throw error;
        await this.refused(error, session);
        await sleep(FLUSH_MS);
      }
    }
  }

  private async beatAll(): Promise<void> {
    while (!this.ended.signal.aborted) {
      const { session, beat_every: every } = this.welcome;
      const holding = [...this.held.values()];
      const message = {
        holding: holding.map(({ taken, reason }) => ({
          execution: taken.execution,
          attempt: taken.attempt,
          cancelling: reason !== undefined,
        })),
        draining: this.draining || this.stopping.signal.aborted,
        wait: every,
      };
      const began = performance.now();
      this.beats = new AbortController();
      try {
        const until = this.isSilent ? Infinity : began + Math.max(0, this.silentIn());
        const answer = await this.send<BeatAnswer>("beat", message, { wait: every * 1000, signal: this.beats.signal, until });
        this.answeredAt = began;
        this.isSilent = false;
        for (const id of answer.lost) this.endNamed(id, holding, "lost");
        for (const id of answer.cancel) this.endNamed(id, holding, "cancelled");
        this.draining = answer.drain;
      } catch (error) {
        if (this.ended.signal.aborted) return;
        if (error instanceof Refused) await this.refused(error, session);
        else if (error instanceof NoAnswer && this.silentIn() <= 0) {
          // Other workers have the attempts soon. The next heartbeat may take as long as it needs.
          this.isSilent = true;
          for (const held of this.held.values()) this.end(held, "lost");
        } else this.report(error);
      }
      const left = 50 - (performance.now() - began);
      if (left > 0) await sleep(left);
    }
  }

  /** Begins another session if the one of a refused call has ended, unless that was done. */
  private async refused(error: Refused, session: string): Promise<void> {
    if (error.kind === "UnknownSession") {
      if (session === this.welcome.session) await this.begin();
      return;
    }
    this.report(error);
    await sleep(REFUSED_MS, undefined, { signal: this.ended.signal }).catch(() => {});
  }

  /** Returns the milliseconds after which this worker has to end its attempts, unless a heartbeat is answered. */
  private silentIn(): number {
    const limit = (this.welcome.lost_after - this.welcome.beat_every / 2) * 1000;
    return this.answeredAt + limit - performance.now();
  }

  /** Ends the attempt of an execution that a heartbeat has named, which may not be the latest one of it. */
  private endNamed(execution: string, named: Held[], reason: Reason): void {
    const held = named.find(({ taken }) => taken.execution === execution);
    if (held) this.end(held, reason);
  }

  private end(held: Held, reason: Reason): void {
    if (held.reason === "lost" || (held.reason === "given_up" && reason !== "lost")) return;
    held.reason = reason;
    held.abort.abort(new Error(reason));
    if (reason === "lost") held.lost.abort();
  }

  private play(taken: TakenAttempt): void {
    const abort = new AbortController();
    const run = new Run(taken, abort.signal, () => this.flushSoon(held));
    const lost = new AbortController();
    const earlier = this.held.get(taken.execution);
    if (earlier) this.end(earlier, "lost"); // an execution has another attempt only once the one before is over
    const held: Held = { taken, run, abort, lost, flushing: Promise.resolve(), hasDropped: false, done: Promise.resolve() };
    this.held.set(taken.execution, held);
    held.done = this.playToEnd(held).catch(this.report).finally(() => this.release(held));
  }

  private release(held: Held): void {
    held.lost.abort();
    if (this.held.get(held.taken.execution) === held) this.held.delete(held.taken.execution);
    this.freed();
  }

  private async playToEnd(held: Held): Promise<void> {
    const { taken, run, abort } = held;
    const limit = this.welcome.result_bytes;
    const cancelTimer = taken.timeout === null ? undefined : startTimer(taken.timeout * 1000, () => this.end(held, "timed_out"));
    let end: End;
    try {
      const entry = this.actions.get(taken.action)!;
      const parameters = withDefaults(entry.parameters, taken.parameters);
      const playing = (async () => entry.run(parameters as never, run))();
      // An action that ignores its signal goes on, and what it returns is dropped.
      const result = await Promise.race([playing, aborted(abort.signal).then(() => Promise.reject(abort.signal.reason))]);
      end = returned(result, limit);
    } catch (error) {
      end = held.reason === "cancelled" || held.reason === "timed_out" ? { outcome: held.reason } : thrown(error, limit);
    } finally {
      cancelTimer?.();
    }
    if (held.reason === "given_up") end = { outcome: "handed_back", started: true };
    await this.flushLast(held);
    await this.finish(held, end);
  }

  /** Reports the end of an attempt. Of one that is refused, the gateway gets a failure with the reason. */
  private async finish(held: Held, end: End): Promise<void> {
    try {
      await this.write(held, "finish", { ends: [{ ...key(held), ...end }] });
    } catch (error) {
      const instead = error instanceof Refused ? refusedEnd(end, error.message) : undefined;
      if (instead === undefined) throw error;
      await this.write(held, "finish", { ends: [{ ...key(held), ...instead }] });
    }
  }

  private flushSoon(held: Held): void {
    held.flushTimer ??= setTimeout(() => {
      held.flushTimer = undefined;
      void this.flush(held);
    }, FLUSH_MS);
  }

  /** Sends the lines and reports that are not sent yet. Those that a gateway refuses are dropped. */
  private flush(held: Held): Promise<void> {
    held.flushing = held.flushing.then(async () => {
      const { lines, reports } = held.run.pending;
      while (lines.length + reports.length > 0) {
        for (const part of parts(held, lines.splice(0, BATCH))) await this.writeOutput(held, "log", { lines: part });
        for (const part of parts(held, reports.splice(0, BATCH))) await this.writeOutput(held, "progress", { reports: part });
      }
    });
    return held.flushing;
  }

  /** Sends the last lines and reports. The end of the attempt does not wait for gateways that answer other calls only. */
  private async flushLast(held: Held): Promise<void> {
    const began = performance.now();
    const flushing = this.flush(held);
    while (!(await within(LAST_OUTPUT_MS, flushing))) {
      if (this.answeredAt > began) return this.drop(held, "no gateway has stored them in time");
    }
  }

  private async writeOutput(held: Held, name: string, message: unknown): Promise<void> {
    try {
      await this.write(held, name, message);
    } catch (error) {
      this.drop(held, error instanceof Error ? error.message : textOf(error));
    }
  }

  private drop(held: Held, reason: string): void {
    if (held.hasDropped) return;
    held.hasDropped = true;
    const { execution, attempt } = key(held);
    this.report(new OutputDropped(`lines or progress of attempt ${attempt} of ${execution} are dropped: ${reason}`));
  }

  /** Sends a write about an attempt, unless the attempt is lost. Throws Refused. */
  private async write(held: Held, name: string, message: unknown): Promise<void> {
    if (held.reason === "lost") return;
    const { session } = this.welcome;
    try {
      await this.send(name, message, { signal: held.lost.signal });
    } catch (error) {
      if (held.lost.signal.aborted) return;
      if (!(error instanceof Refused) || (error.kind !== "ClaimLost" && error.kind !== "UnknownSession")) throw error;
      this.end(held, "lost");
      if (error.kind === "UnknownSession") await this.refused(error, session);
    }
  }

  private async drain(): Promise<void> {
    const done = Promise.all([...this.held.values()].map((held) => held.done));
    const grace = new AbortController();
    await Promise.race([done, sleep(Math.min((this.options.grace ?? 30) * 1000, LONGEST_TIMER_MS), undefined, { signal: grace.signal }).catch(() => {})]);
    grace.abort();
    for (const held of this.held.values()) this.end(held, "given_up");
    await done;
  }
}

/** Calls a function of the program. What it throws is printed, and does not end the worker. */
function notify<T>(call: (value: T) => unknown, value: T): void {
  void (async () => call(value))().catch(printed);
}

function key(held: Held): { execution: string; attempt: number } {
  return { execution: held.taken.execution, attempt: held.taken.attempt };
}

/** Yields lines or reports in parts that are small enough for one message. */
function* parts(held: Held, items: object[]): Generator<Written[]> {
  let part: Written[] = [];
  let size = 0;
  for (const item of items) {
    const written = new Written(encode({ ...key(held), ...item }, "the output"));
    const bytes = Buffer.byteLength(written.json);
    if (part.length > 0 && size + bytes > OUTPUT_BYTES) {
      yield part;
      part = [];
      size = 0;
    }
    part.push(written);
    size += bytes;
  }
  if (part.length > 0) yield part;
}

/** Returns false after so many milliseconds, or true once a promise is fulfilled. */
async function within(ms: number, promise: Promise<unknown>): Promise<boolean> {
  const timer = new AbortController();
  const waiting = sleep(ms, false, { signal: timer.signal }).catch(() => true);
  void promise.then(() => timer.abort());
  return waiting;
}

/** Calls a function after so many milliseconds. Returns a function that cancels it. */
function startTimer(ms: number, work: () => void): () => void {
  let timer: NodeJS.Timeout;
  const start = (left: number) => {
    const next = () => (left > LONGEST_TIMER_MS ? start(left - LONGEST_TIMER_MS) : work());
    timer = setTimeout(next, Math.min(left, LONGEST_TIMER_MS));
  };
  start(ms);
  return () => clearTimeout(timer);
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener("abort", () => resolve(), { once: true });
  });
}
