import { setTimeout as sleep } from "node:timers/promises";
import { cutEnd } from "./cuts.js";
import { MayHaveHappened, NoAnswer, Refused } from "./errors.js";
import { encode, parse } from "./json.js";

const FIRST_PAUSE_MS = 200;
const LONGEST_PAUSE_MS = 5_000;
const ANSWER_MS = 15_000;
/** The codes of errors that come before a request is sent. */
const UNSENT: unknown[] = ["ECONNREFUSED", "ENOTFOUND", "EAI_AGAIN", "EHOSTUNREACH", "ENETUNREACH", "UND_ERR_CONNECT_TIMEOUT"];

export interface CallOptions {
  /** Milliseconds that the server may wait before it answers. */
  wait?: number;
  /** Ends the repetitions, and the call. */
  signal?: AbortSignal;
  /** The time of `performance.now()` at which the call is given up. Default: never. */
  until?: number;
  /** Headers besides the token. */
  headers?: Record<string, string>;
  /** True: a request that a server may have received is not sent again, since it would take effect twice. */
  once?: boolean;
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
    for (const server of this.servers) checkServer(server);
    if (this.servers.length === 0) throw new TypeError("no server is named. Set PENSTOCK_SERVER, for example https://penstock.example.org");
  }

  /** Sends a request until it is answered. Throws Refused, NoAnswer, NotStorable, and the reason of an aborted signal. With `once`,
   * also throws MayHaveHappened. */
  async call<T>(path: string, body: unknown, options: CallOptions = {}): Promise<T> {
    const { signal, until = Infinity } = options;
    let pause = FIRST_PAUSE_MS;
    let sent = body === undefined ? undefined : encode(body, "the message");
    for (;;) {
      signal?.throwIfAborted();
      const left = until - performance.now();
      if (left <= 0) throw new NoAnswer(path);
      const server = this.servers[0]!;
      try {
        const { status, text } = await within(Math.min((options.wait ?? 0) + ANSWER_MS, left), signal, async (ending) => {
          const answer = await fetch(`${server}/api/v1/${path}`, {
            method: options.method ?? "POST",
            headers: {
              ...(this.token === undefined ? {} : { authorization: `Bearer ${this.token}` }),
              ...(sent === undefined ? {} : { "content-type": "application/json" }),
              ...options.headers,
            },
            ...(sent === undefined ? {} : { body: sent }),
            signal: ending,
          });
          return { status: answer.status, text: await answer.text() };
        });
        if (status < 400) return (text ? parse(text) : {}) as T;
        if (status < 500 && status !== 429) throw new Refused(status, problem(text));
        if (options.once && status !== 429) throw new MayHaveHappened(path, `the answer was ${status}`);
      } catch (error) {
        if (error instanceof Refused || error instanceof MayHaveHappened) throw error;
        signal?.throwIfAborted();
        if (error instanceof TypeError && !("cause" in error)) throw error; // a header that cannot be sent
        if (options.once && !isUnsent(error)) throw new MayHaveHappened(path, "the connection ended before an answer");
      }
      this.servers.push(this.servers.shift()!);
      if (options.again) sent = encode(options.again(body), "the message");
      const rest = Math.min(pause * (0.5 + Math.random()), Math.max(0, until - performance.now()));
      await sleep(rest, undefined, signal ? { signal } : {});
      pause = Math.min(2 * pause, LONGEST_PAUSE_MS);
    }
  }
}

/** Runs `work` with a signal that is aborted with `outer`, and after so many milliseconds. A timer holds the signal. Node may
 * collect an AbortSignal.timeout() that only an AbortSignal.any() refers to, and then it never fires. */
async function within<T>(ms: number, outer: AbortSignal | undefined, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const ending = new AbortController();
  const end = () => ending.abort(outer?.reason);
  const timer = setTimeout(() => ending.abort(new DOMException("no answer in time", "TimeoutError")), ms);
  outer?.addEventListener("abort", end, { once: true });
  try {
    return await work(ending.signal);
  } finally {
    clearTimeout(timer);
    outer?.removeEventListener("abort", end);
  }
}

/** Returns whether a request failed before any server had received it. */
function isUnsent(error: unknown): boolean {
  const { cause } = error as { cause?: { code?: unknown; syscall?: unknown } };
  return UNSENT.includes(cause?.code) || cause?.syscall === "connect" || cause?.syscall === "getaddrinfo";
}

/** Throws TypeError for an address to which nothing can be sent: such a call would be repeated for ever. */
function checkServer(server: string): void {
  const url = URL.canParse(server) ? new URL(server) : undefined;
  if (url === undefined || !/^https?:$/.test(url.protocol) || url.username !== "" || url.password !== "") {
    throw new TypeError(`${JSON.stringify(server)} is not the address of a server. Write it as https://penstock.example.org`);
  }
}

function problem(text: string): { type?: string; detail?: string; hint?: string } {
  try {
    const document = JSON.parse(text) as unknown;
    if (typeof document === "object" && document !== null) return document;
  } catch {
    // a proxy has answered
  }
  return { detail: cutEnd(text, 200) };
}
