import { setTimeout as sleep } from "node:timers/promises";
import { Refused } from "./errors.js";

const FIRST_PAUSE_MS = 200;
const LONGEST_PAUSE_MS = 5_000;
const ANSWER_MS = 15_000;

export interface CallOptions {
  /** Milliseconds that the server may wait before it answers. */
  wait?: number;
  /** Ends the repetitions, and the call. */
  signal?: AbortSignal;
  /** Headers besides the token. */
  headers?: Record<string, string>;
  /** Changes the body before it is sent again. */
  again?: (body: unknown) => unknown;
  method?: string;
}

/** The servers of an installation. A call without an answer is sent again, to the next of them. */
export class Calls {
  private readonly servers: string[];

  constructor(
    servers: string,
    private readonly token: string | undefined,
  ) {
    this.servers = servers
      .split(",")
      .map((server) => server.trim().replace(/\/+$/, ""))
      .filter(Boolean);
    if (this.servers.length === 0) throw new TypeError("no server is named, such as https://penstock.example.org");
  }

  /** Sends a request until it is answered. Throws Refused, and the reason of an aborted signal. */
  async call<T>(path: string, body: unknown, options: CallOptions = {}): Promise<T> {
    let pause = FIRST_PAUSE_MS;
    for (;;) {
      options.signal?.throwIfAborted();
      const server = this.servers[0]!;
      const timeout = AbortSignal.timeout(Math.ceil(options.wait ?? 0) + ANSWER_MS);
      try {
        const answer = await fetch(`${server}/api/v1/${path}`, {
          method: options.method ?? "POST",
          headers: {
            ...(this.token === undefined ? {} : { authorization: `Bearer ${this.token}` }),
            ...(body === undefined ? {} : { "content-type": "application/json" }),
            ...options.headers,
          },
          ...(body === undefined ? {} : { body: JSON.stringify(body) }),
          signal: options.signal ? AbortSignal.any([options.signal, timeout]) : timeout,
        });
        const text = await answer.text();
        if (answer.status < 400) return (text ? JSON.parse(text) : {}) as T;
        if (answer.status < 500 && answer.status !== 429) throw new Refused(answer.status, problem(text));
      } catch (error) {
        if (error instanceof Refused) throw error;
        options.signal?.throwIfAborted();
        if (error instanceof TypeError && !("cause" in error)) throw error; // a value that is no JSON
      }
      this.servers.push(this.servers.shift()!);
      if (options.again) body = options.again(body);
      await sleep(pause * (0.5 + Math.random()), undefined, options.signal ? { signal: options.signal } : {});
      pause = Math.min(2 * pause, LONGEST_PAUSE_MS);
    }
  }
}

function problem(text: string): { type?: string; detail?: string; hint?: string } {
  try {
    return JSON.parse(text) as { type?: string; detail?: string; hint?: string };
  } catch {
    return { detail: text.slice(0, 200) };
  }
}
