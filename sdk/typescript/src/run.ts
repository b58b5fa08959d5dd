import { cutEnd, parts } from "./cuts.js";
import type { Line, Report, TakenAttempt, Json } from "./protocol.js";
import { textOf } from "./texts.js";

const LONGEST_LINE = 16_000;
const STREAMS: readonly unknown[] = ["stdout", "stderr", "log"];

/** An attempt of an action. */
export class Run {
  /** Aborted when the attempt is cancelled, is out of time, or is no longer this worker's. Pass it to what you call. */
  readonly signal: AbortSignal;
  /** Lines and reports that are not sent yet. */
  readonly pending: { lines: Line[]; reports: Report[] } = { lines: [], reports: [] };
  private seq = 0;

  constructor(
    private readonly taken: TakenAttempt,
    signal: AbortSignal,
    private readonly wrote: () => void,
  ) {
    this.signal = signal;
  }

  get execution(): string {
    return this.taken.execution;
  }

  /** The number of this attempt, from 1. */
  get attempt(): number {
    return this.taken.attempt;
  }

  get maxAttempts(): number {
    return this.taken.max_attempts;
  }

  get action(): string {
    return this.taken.action;
  }

  get tenant(): string {
    return this.taken.tenant;
  }

  /** The task in its workflow; null outside of one. */
  get task(): string | null {
    return this.taken.task;
  }

  /** The execution of the workflow; null outside of one. */
  get workflow(): string | null {
    return this.taken.workflow;
  }

  get context(): { [name: string]: Json } {
    return this.taken.context;
  }

  /** The state of the latest `Defer` of this execution; null for none. */
  get state(): Json {
    return this.taken.state;
  }

  /** The W3C trace context for outgoing calls. */
  get trace(): { [name: string]: string } {
    return this.taken.trace;
  }

  /** The same text in every attempt of this execution, for calls that must take effect once. */
  get idempotencyKey(): string {
    return this.taken.execution;
  }

  /** Logs a text, each of its lines by itself. Another value is logged as `console.log` prints it. */
  log(text: unknown, stream: Line["stream"] = "log"): void {
    if (!STREAMS.includes(stream)) throw new RangeError(`a stream is stdout, stderr or log, not ${textOf(stream)}`);
    for (const line of textOf(text).split("\n")) {
      for (const part of parts(line, LONGEST_LINE)) this.pending.lines.push({ seq: ++this.seq, stream, line: part });
    }
    this.wrote();
  }

  /** Reports how much is done, from 0 to 1. */
  progress(done: number, text = ""): void {
    if (typeof done !== "number" || !(done >= 0 && done <= 1)) {
      throw new RangeError(`progress is a number from 0 to 1, not ${textOf(done)}`);
    }
    this.pending.reports.push({ seq: ++this.seq, done, text: cutEnd(textOf(text), LONGEST_LINE) });
    this.wrote();
  }
}
