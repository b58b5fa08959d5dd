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

/** A call that takes effect each time was not answered, and a server may have received it. It is not sent again by itself. */
export class MayHaveHappened extends Error {
  override name = "MayHaveHappened";

  constructor(path: string, reason: string) {
    super(`${path} may have taken effect: ${reason}. Look at the execution before you send it again`);
  }
}

/** A schema of an action is not that of its definition. It is reported to `onError`, and the worker goes on. */
export class SchemaDiffers extends Error {
  override name = "SchemaDiffers";
}

/** Lines or reports of an attempt are dropped. It is reported to `onError` once for an attempt, which goes on. */
export class OutputDropped extends Error {
  override name = "OutputDropped";
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
