import { Calls } from "./calls.js";
import { Refused } from "./errors.js";
import { Written, encode } from "./json.js";
import type { Json } from "./protocol.js";

export interface StartOptions {
  tenant?: string;
  priority?: number;
  /** A second start with the same key returns the same execution. */
  key?: string;
  /** Seconds before it starts. */
  delay?: number;
}

/** The parameters and results of actions and workflows, by ref. `penstock types actions.ts` writes such a type, `Actions`. */
export type ActionTypes = Record<string, { parameters: { [name: string]: unknown }; result: unknown }>;
/** The types of a client that knows no actions. */
export type AnyActions = Record<string, { parameters: { [name: string]: unknown }; result: Json }>;
/** A ref of these actions. */
export type Ref<A extends ActionTypes> = keyof A & string;
/** What a start is given: parameters, which may be left out where none is required, and options. */
export type StartArguments<P> = Record<string, never> extends P
  ? [parameters?: P, options?: StartOptions]
  : {} extends P
    ? [parameters?: P, options?: StartOptions]
    : [parameters: P, options?: StartOptions];

/** The answer to a signal. */
export interface SentSignal {
  name: string;
  /** True if the suspended function waits for a signal of this name. */
  is_awaited: boolean;
  /** The names of the signals that the suspended function waits for. */
  awaits: string[];
  /** Sentences for people if the function does not wait for the signal. */
  notice: string | null;
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

/** A client of the HTTP API. `Client<Actions>` checks refs, parameters and results. */
export class Client<A extends ActionTypes = AnyActions> {
  private readonly calls: Calls;

  /** Default: PENSTOCK_SERVER and PENSTOCK_TOKEN. */
  constructor(options: { server?: string; token?: string } = {}) {
    const server = options.server ?? process.env["PENSTOCK_SERVER"] ?? "";
    this.calls = new Calls(server, options.token ?? process.env["PENSTOCK_TOKEN"]);
  }

  /** Starts an action or a workflow. Returns the id of its execution once it is stored. Throws NotStorable for parameters that
   * JSON cannot hold. */
  async start<R extends Ref<A>>(action: R, ...given: StartArguments<A[R]["parameters"]>): Promise<string> {
    const [parameters = {}, options = {}] = given;
    const { key = crypto.randomUUID(), ...more } = options;
    const body = { action, parameters: new Written(encode(parameters, "the parameters")), ...more };
    const answer = await this.calls.call<{ id: string }>("executions", body, { headers: { "idempotency-key": key } });
    return answer.id;
  }

  /** Publishes an event. Returns its id once it is stored. Throws NotStorable for a payload that JSON cannot hold. */
  async publish(
    trigger: string,
    payload: unknown = null,
    options: { tenant?: string; key?: string } = {},
  ): Promise<string> {
    const { key = crypto.randomUUID(), ...more } = options;
    const body = { trigger, payload: new Written(encode(payload, "the payload")), ...more };
    const answer = await this.calls.call<{ id: string }>("events", body, { headers: { "idempotency-key": key } });
    return answer.id;
  }

  /** Sends a signal to a durable function. `is_awaited` of the answer tells whether the function waits for it now. Throws
   * MayHaveHappened if the answer is lost: a second signal would be another one. */
  async signal(execution: string, name: string, value: unknown = null): Promise<SentSignal> {
    const body = { name, value: new Written(encode(value, "the value")) };
    return this.calls.call<SentSignal>(`executions/${encodeURIComponent(execution)}/signal`, body, { once: true });
  }

  /** Waits for the end of an execution, and returns its result. Throws ExecutionFailed. */
  async result<T = Json>(execution: string, options: { signal?: AbortSignal } = {}): Promise<T> {
    for (;;) {
      const answer = await this.calls.call<{ status: string; finished: boolean; result: T; error: Json; failure: string | null }>(
        `executions/${encodeURIComponent(execution)}/result?wait=20`,
        undefined,
        { method: "GET", wait: 25_000, ...(options.signal ? { signal: options.signal } : {}) },
      );
      if (answer.status === "completed") return answer.result;
      if (answer.finished) throw new ExecutionFailed(execution, answer.status, answer.error, answer.failure);
    }
  }

  /** Starts an action, and returns its result. A client without types of actions takes the type of the result. */
  async run<T = Json>(
    action: string extends keyof A ? string : never,
    parameters?: { [name: string]: unknown },
    options?: StartOptions,
  ): Promise<T>;
  async run<R extends Ref<A>>(action: R, ...given: StartArguments<A[R]["parameters"]>): Promise<A[R]["result"]>;
  async run(action: Ref<A>, ...given: StartArguments<A[Ref<A>]["parameters"]>): Promise<unknown> {
    return this.result<unknown>(await this.start(action, ...given));
  }

  /** Cancels an execution. Nothing happens if it has ended. Throws MayHaveHappened if the answer is lost: a second request would
   * also end what cleans up after the first. */
  async cancel(execution: string): Promise<void> {
    try {
      await this.calls.call(`executions/${encodeURIComponent(execution)}/cancel`, {}, { once: true });
    } catch (error) {
      if (!(error instanceof Refused) || error.status !== 409) throw error;
    }
  }
}
