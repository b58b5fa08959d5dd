import { cutEnd } from "./cuts.js";
import type { ActionError } from "./protocol.js";

/** An answer of the server that a repetition would not change. `kind` is the name of the problem, such as `ClaimLost`. */
export class Refused extends Error {
  readonly kind: string;

  constructor(
    readonly status: number,
    problem: { type?: string; detail?: string; hint?: string },
  ) {
    super(`${status} ${[problem.detail, problem.hint].filter(Boolean).join(". ")}`);
    this.name = "Refused";
    this.kind = (problem.type ?? "").split(":").pop() ?? "";
  }
}

/** No server has answered a call in the time that it had. */
export class NoAnswer extends Error {
  override name = "NoAnswer";

  constructor(path: string) {
    super(`no server has answered ${path} in time`);
  }
}

/** A schema of an action is not that of its definition. It is reported to `onError`, and the worker goes on. */
export class SchemaDiffers extends Error {
  override name = "SchemaDiffers";
}

/** Fails an attempt so that it is not retried. */
export class NonRetryable extends Error {
  override name = "NonRetryable";
}

/** Fails an attempt so that it is retried, after `after` seconds or by the retry policy. */
export class Retry extends Error {
  override name = "Retry";

  constructor(
    message: string,
    readonly after?: number,
  ) {
    super(message);
  }
}

/** Ends an attempt that continues later: the action runs again, and `run.state` is this state. */
export class Defer extends Error {
  override name = "Defer";

  constructor(
    readonly when: { delay: number } | { until: Date },
    readonly state: unknown = null,
  ) {
    super("deferred");
  }
}

const LONGEST_MESSAGE = 60_000;

/** Returns what is stored of an error. */
export function described(error: unknown): ActionError {
  if (!(error instanceof Error)) return { type: "Error", message: cutEnd(String(error), LONGEST_MESSAGE) };
  const kinds: string[] = [];
  for (let kind = Object.getPrototypeOf(error); kind && kind !== Object.prototype; kind = Object.getPrototypeOf(kind)) {
    kinds.push(String(kind.constructor.name));
  }
  const type = error.name || "Error";
  const stored: ActionError = {
    type,
    message: cutEnd(error.message, LONGEST_MESSAGE),
    traceback: cutEnd(error.stack ?? "", LONGEST_MESSAGE),
    kinds: [...new Set([type, ...kinds])],
  };
  if (error instanceof NonRetryable) stored.retryable = false;
  if (error instanceof Retry) {
    stored.retryable = true;
    if (error.after !== undefined) stored.retry_after = error.after;
  }
  return stored;
}
