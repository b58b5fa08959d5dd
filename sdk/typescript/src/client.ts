import { Calls } from "./calls.js";
import { Refused } from "./errors.js";
import type { Json } from "./protocol.js";

export interface StartOptions {
  tenant?: string;
  priority?: number;
  /** A second start with the same key returns the same execution. */
  key?: string;
  /** Seconds before it starts. */
  delay?: number;
}

/** An execution that ended, and not as `completed`. */
export class ExecutionFailed extends Error {
  override name = "ExecutionFailed";

  constructor(
    readonly execution: string,
    readonly status: string,
    readonly error: Json,
    /** One sentence about what failed first, at any depth. */
    readonly failure: string | null = null,
  ) {
    super(`execution ${execution} ended as ${status}${failure === null ? "" : `: ${failure}`}`);
  }
}

/** A client of the HTTP API. */
export class Client {
  private readonly calls: Calls;

  /** Default: PENSTOCK_SERVER and PENSTOCK_TOKEN. */
  constructor(options: { server?: string; token?: string } = {}) {
    const server = options.server ?? process.env["PENSTOCK_SERVER"] ?? "";
    this.calls = new Calls(server, options.token ?? process.env["PENSTOCK_TOKEN"]);
  }

  /** Starts an action or a workflow. Returns the id of its execution once it is stored. */
  async start(action: string, parameters: { [name: string]: unknown } = {}, options: StartOptions = {}): Promise<string> {
    const { key = crypto.randomUUID(), ...more } = options;
    const body = { action, parameters, ...more };
    const answer = await this.calls.call<{ id: string }>("executions", body, { headers: { "idempotency-key": key } });
    return answer.id;
  }

  /** Publishes an event. Returns its id once it is stored. */
  async publish(
    trigger: string,
    payload: unknown = null,
    options: { tenant?: string; key?: string } = {},
  ): Promise<string> {
    const { key = crypto.randomUUID(), ...more } = options;
    const body = { trigger, payload, ...more };
    const answer = await this.calls.call<{ id: string }>("events", body, { headers: { "idempotency-key": key } });
    return answer.id;
  }

  /** Waits for the end of an execution, and returns its result. Throws ExecutionFailed. */
  async result<T = Json>(execution: string, options: { signal?: AbortSignal } = {}): Promise<T> {
    for (;;) {
      const answer = await this.calls.call<{ status: string; finished: boolean; result: T; error: Json; failure: string | null }>(
        `executions/${execution}/result?wait=20`,
        undefined,
        { method: "GET", wait: 25_000, ...(options.signal ? { signal: options.signal } : {}) },
      );
      if (answer.status === "completed") return answer.result;
      if (answer.finished) throw new ExecutionFailed(execution, answer.status, answer.error, answer.failure);
    }
  }

  /** Starts an action, and returns its result. */
  async run<T = Json>(action: string, parameters: { [name: string]: unknown } = {}, options: StartOptions = {}): Promise<T> {
    return this.result<T>(await this.start(action, parameters, options));
  }

  /** Cancels an execution. Nothing happens if it has ended. */
  async cancel(execution: string): Promise<void> {
    try {
      await this.calls.call(`executions/${execution}/cancel`, {});
    } catch (error) {
      if (!(error instanceof Refused) || error.status !== 409) throw error;
    }
  }
}
