import assert from "node:assert/strict";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { test, type TestContext } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { Client, MayHaveHappened, Worker, action, type Run } from "../index.js";
import { encode, parse } from "../json.js";

type Message = Record<string, any>;
/** Returns an answer, or a status and a problem; undefined for none: the connection stays open, and nothing comes. */
type Answer = (message: Message, session: string, count: number) => object | Promise<object> | undefined;

const SILENT: Answer = () => undefined;
const UNKNOWN = { status: 404, type: "urn:penstock:error:UnknownSession" };
/** Milliseconds after which a test has failed: something hangs. */
const LIMIT = { timeout: 12_000 };

/** A gateway that answers as the test says. `sent` has all messages by call. */
async function gateway(context: TestContext, answers: Record<string, Answer>) {
  const sent: Record<string, Message[]> = {};
  const answer = async (request: IncomingMessage, response: ServerResponse) => {
    let body = "";
    request.setEncoding("utf8");
    for await (const piece of request) body += piece;
    const name = request.url!.split("/").pop()!;
    const message = JSON.parse(body) as Message;
    const count = (sent[name] ??= []).push(message);
    const document = await (answers[name] ?? (() => ({ lost: [] })))(message, String(request.headers["penstock-session"]), count);
    if (document === undefined) return;
    response.writeHead("status" in document ? Number(document.status) : 200, { "content-type": "application/json" });
    response.end(JSON.stringify(document));
  };
  const server = createServer((request, response) => void answer(request, response).catch(() => {}));
  await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));
  context.after(() => (server.closeAllConnections(), server.close()));
  return { server: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, sent };
}

const welcome = (count: number) => ({
  session: `psw_${count}`, worker: "w", beat_every: 0.1, lost_after: 1, wait_at_most: 20, batch_at_most: 500, result_bytes: 1000,
});
const hello: Answer = (_message, _session, count) => welcome(count);
const beat: Answer = () => sleep(30, { lost: [], cancel: [], drain: false });
const taken = (execution: string) => ({
  attempts: [{ execution, attempt: 1, action: "a.b", parameters: {}, state: null, timeout: null }], drain: false,
});

function signal<T = void>() {
  let give!: (value: T) => void;
  return { promise: new Promise<T>((resolve) => (give = resolve)), give };
}

/** Runs a worker of one action until the end of the block. */
async function working(
  server: string,
  run: (run: Run) => unknown,
  block: (worker: Worker, ended: Promise<void>) => Promise<unknown>,
  onError: (error: unknown) => void = () => {},
) {
  const worker = new Worker({
    server, token: "t", name: "w", slots: 2, grace: 0.1, onError, actions: [action("a.b", (_, attempt) => run(attempt))],
  });
  const ended = worker.run();
  try {
    await block(worker, ended);
  } finally {
    worker.stop();
  }
  await ended;
}

test("attempt ends while no heartbeat is answered, whatever Node collects", LIMIT, async (context) => {
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc") as () => void;
  const collecting = setInterval(collect, 20);
  context.after(() => clearInterval(collecting));
  const { server } = await gateway(context, { hello, beat: SILENT, take: (_m, _s, count) => (count === 1 ? taken("1") : undefined) });
  const lost = signal<unknown>();
  const run = ({ signal: own }: Run) => new Promise(() => own.addEventListener("abort", () => lost.give(own.reason)));
  await working(server, run, async () => assert.equal(String(await lost.promise), "Error: lost"));
});

test("worker completes attempts once heartbeats are answered again", LIMIT, async (context) => {
  const silence = signal();
  const finished = signal<Message>();
  const { server } = await gateway(context, {
    hello,
    beat: (message, session, count) => (count === 1 ? undefined : beat(message, session, count)),
    take: (_m, _s, count) => (count === 1 ? taken("1") : count === 2 ? silence.promise.then(() => taken("2")) : undefined),
    finish: (message) => (finished.give(message), { lost: [] }),
  });
  const run = async ({ execution, signal: own }: Run) => {
    if (execution === "1") own.addEventListener("abort", () => silence.give());
    await sleep(execution === "1" ? 60_000 : 500, undefined, { signal: own });
  };
  await working(server, run, async () => {
    const [end] = (await finished.promise)["ends"];
    assert.deepEqual([end.execution, end.outcome], ["2", "completed"]);
  });
});

test("late refusal of an ended session does not end the next one", LIMIT, async (context) => {
  const next = signal();
  const finished = signal<string>();
  const { server, sent } = await gateway(context, {
    hello,
    beat: (message, session, count) => (session === "psw_1" ? UNKNOWN : beat(message, session, count)),
    take: (_m, session) => (session === "psw_1" ? next.promise.then(() => UNKNOWN) : (sent["finish"] ? undefined : taken("1"))),
    finish: (_m, session) => (finished.give(session), { lost: [] }),
  });
  context.after(() => next.give());
  await working(server, () => null, async () => {
    while ((sent["hello"]?.length ?? 0) < 2) await sleep(5);
    await sleep(100); // the second session has begun
    next.give();
    assert.equal(await finished.promise, "psw_2");
    assert.equal(sent["hello"]!.length, 2);
  });
});

test("worker stops while no gateway answers its hello", LIMIT, async (context) => {
  const { server, sent } = await gateway(context, { hello: SILENT });
  await working(server, () => null, async (worker, ended) => {
    while (!sent["hello"]) await sleep(5);
    worker.stop();
    await ended;
  });
});

test("worker stops while no gateway takes the end of its attempt", LIMIT, async (context) => {
  const { server, sent } = await gateway(context, {
    hello,
    beat: (message, session, count) => (sent["finish"] ? undefined : beat(message, session, count)),
    take: (_m, _s, count) => (count === 1 ? taken("1") : undefined),
    finish: SILENT,
    bye: () => ({}),
  });
  await working(server, () => null, async (worker, ended) => {
    while (!sent["finish"]) await sleep(5);
    worker.stop();
    await ended;
    assert.equal(sent["bye"]?.length, 1);
  });
});

test("each cut of a long text has a mark, and divides no character", LIMIT, async (context) => {
  const finished = signal<Message>();
  const { server, sent } = await gateway(context, {
    hello, beat,
    take: (_m, _s, count) => (count === 1 ? taken("1") : undefined),
    finish: (message) => (finished.give(message), { lost: [] }),
  });
  const line = "x".repeat(15_995) + "a-secret-text" + "😀".repeat(16_000);
  await working(server, (run) => (run.log(line), run.progress(0.5, line), Promise.reject(new Error("y".repeat(70_000)))), async () => {
    const [end] = (await finished.promise)["ends"];
    const lines = sent["log"]!.flatMap((message) => message["lines"].map((entry: Message) => String(entry["line"])));
    assert.ok(lines.length > 2 && lines.every((part) => part.length <= 16_000));
    assert.ok(lines.slice(1).every((part) => part.startsWith("…")) && lines.slice(0, -1).every((part) => part.endsWith("…")));
    assert.equal(lines.map((part) => part.replaceAll("…", "")).join(""), line);
    assert.ok(lines.every((part) => !/[\ud800-\udbff]…/.test(part)));
    assert.equal(sent["progress"]![0]!["reports"][0].text.at(-1), "…");
    assert.deepEqual([end.error.message.length, end.error.message.at(-1), end.error.traceback.at(-1)], [16_000, "…", "…"]);
  });
});

const REFUSED = { status: 422, type: "urn:penstock:error:InvalidInput", detail: "no such thing" };

/** Runs one attempt. Returns its ends, and what was reported to `onError`. */
async function ended(context: TestContext, answers: Record<string, Answer>, run: (run: Run) => unknown, onError?: () => unknown) {
  const reports: unknown[] = [];
  const finished = signal();
  const { server, sent } = await gateway(context, {
    hello, beat,
    take: (_m, _s, count) => (count === 1 ? taken("1") : undefined),
    ...answers,
    finish: async (message, session, count) => {
      const answer = await (answers["finish"] ?? (() => ({ lost: [] })))(message, session, count)!;
      if (!("status" in answer)) finished.give();
      return answer;
    },
  });
  const note = (error: unknown) => (reports.push(error), onError?.());
  await working(server, run, () => finished.promise, note);
  return { ends: sent["finish"]!.flatMap((message) => message["ends"] as Message[]), reports: reports.map(String), sent };
}

test("refused lines and reports are dropped with one warning, and the end is reported", LIMIT, async (context) => {
  const run = async (attempt: Run) => {
    attempt.log("first");
    await sleep(500);
    attempt.log("second");
    attempt.progress(0.5);
    return 7;
  };
  const { ends, reports, sent } = await ended(context, { log: () => REFUSED, progress: () => REFUSED }, run);
  assert.deepEqual(ends, [{ execution: "1", attempt: 1, outcome: "completed", result: 7 }]);
  assert.deepEqual(reports, ["OutputDropped: lines or progress of attempt 1 of 1 are dropped: 422 no such thing"]);
  assert.deepEqual([sent["log"]!.length, sent["progress"]!.length], [2, 1]);
});

test("end does not wait for lines that no gateway stores", { timeout: 30_000 }, async (context) => {
  const { ends, reports } = await ended(context, { log: () => ({ status: 500 }) }, (run) => (run.log("a"), 7));
  assert.deepEqual(ends.map((end) => end["result"]), [7]);
  assert.deepEqual(reports, ["OutputDropped: lines or progress of attempt 1 of 1 are dropped: no gateway has stored them in time"]);
});

test("refused end becomes a failure that keeps its message", LIMIT, async (context) => {
  const refusal = "the gateway refused the end of this attempt: 422 no such thing";
  const first: Answer = (_m, _s, count) => (count === 1 ? REFUSED : { lost: [] });
  const failure = () => Promise.reject(new RangeError("mine"));
  const failed = await ended(context, { finish: first }, failure);
  assert.deepEqual(failed.ends[1]!["error"], { type: "RangeError", message: `mine. And ${refusal}` });
  const completed = await ended(context, { finish: first }, () => 7);
  assert.deepEqual(completed.ends[1]!["error"], { type: "ResultNotStorable", message: refusal, retryable: false });
});

test("callbacks that throw do not stop the worker", LIMIT, async (context) => {
  const printed = context.mock.method(console, "error", () => {});
  const rejection = async () => Promise.reject(new Error("bad callback"));
  const { ends, reports } = await ended(context, { log: () => REFUSED }, (run) => (run.log("a"), 7), rejection);
  assert.deepEqual([ends.length, reports.length], [1, 1]);
  assert.ok(printed.mock.calls.some(({ arguments: [text] }) => String(text).includes("bad callback")));
});

test("timeout of a hundred days does not end an attempt at once", LIMIT, async (context) => {
  const [attempt] = taken("1").attempts;
  const take: Answer = (_m, _s, count) => (count === 1 ? { attempts: [{ ...attempt, timeout: 8_640_000 }], drain: false } : undefined);
  const { ends } = await ended(context, { take }, () => sleep(100, 7));
  assert.equal(ends[0]!["outcome"], "completed");
});

test("integers keep all their digits, and texts that look like them stay texts", () => {
  const text = '{"a":[9007199254740993,-9223372036854775808,1.50,18446744073709551615],"9007199254740993":"9007199254740993 \\\\\\""}';
  const value = parse(text) as Message;
  assert.deepEqual(value["a"], [9007199254740993n, -9223372036854775808n, 1.5, 18446744073709551615n]);
  assert.equal(encode(value, "it"), text.replace("1.50", "1.5"));
  const others = ["0.12345678901234567890", "1e+00000000000000000001", "123456789012345678901", "1234567890123456.5", "12345678901234567e2"];
  for (const other of others) assert.equal(parse(other), Number(other));
  assert.throws(() => parse("00000000000000009007199254740993"), SyntaxError);
  assert.throws(() => parse('"9007199254740993'), SyntaxError);
});

test("text of several lines is sent while the action runs", LIMIT, async (context) => {
  const logged = signal<Message>();
  const { sent } = await ended(context, { log: (message) => (logged.give(message), { lost: [] }) }, async (run) => {
    run.log("first\nsecond");
    const first = await logged.promise; // the end of the attempt would send the lines, too
    return first["lines"].length;
  });
  assert.deepEqual(sent["finish"]![0]!["ends"][0].result, 2);
});

test("worker that stops says so in each heartbeat", LIMIT, async (context) => {
  const over = signal();
  const { server, sent } = await gateway(context, { hello, beat, take: (_m, _s, count) => (count === 1 ? taken("1") : undefined), bye: () => ({}) });
  const worker = new Worker({ server, token: "t", name: "w", grace: 5, onError: () => {}, actions: [action("a.b", () => over.promise)] });
  const running = worker.run();
  while (!sent["beat"]?.some((message) => message["holding"].length === 1)) await sleep(5);
  worker.stop();
  const before = sent["beat"]!.length;
  while (sent["beat"]!.length < before + 4) await sleep(5);
  over.give();
  await running;
  assert.deepEqual(new Set(sent["beat"]!.slice(before).map((message) => message["draining"])), new Set([true]));
});

test("second attempt of an execution ends the first one", LIMIT, async (context) => {
  const first = signal<unknown>();
  const [attempt] = taken("1").attempts;
  const take: Answer = (_m, _s, count) =>
    count === 1 ? taken("1") : count === 2 ? sleep(50, { attempts: [{ ...attempt, attempt: 2 }], drain: false }) : undefined;
  const run = async ({ attempt: number, signal: own }: Run) => {
    if (number === 2) return first.promise.then(String);
    await new Promise((resolve) => own.addEventListener("abort", resolve));
    first.give(own.reason);
  };
  const { ends } = await ended(context, { take }, run);
  assert.deepEqual(ends, [{ execution: "1", attempt: 2, outcome: "completed", result: "Error: lost" }]);
});

for (const [list, reason] of [["lost", "Error: lost"], ["cancel", "Error: cancelled"]] as const) {
  test(`late answer "${list}" about an attempt does not end the next one of its execution`, LIMIT, async (context) => {
    const named = signal();
    const isNext = signal();
    const [attempt] = taken("1").attempts;
    let answers = 0;
    const late: Answer = async (message, session, count) => {
      const answer = { lost: [], cancel: [], drain: false };
      if (!message["holding"].some((held: Message) => held["attempt"] === 1 && !held["cancelling"])) return beat(message, session, count)!;
      named.give();
      await isNext.promise; // the worker has attempt 2 before it reads this answer about attempt 1
      answers += 1;
      return { ...answer, [list]: ["1"] };
    };
    const take: Answer = (_m, _s, count) =>
      count === 1 ? taken("1")
        : count === 2 ? named.promise.then(() => ({ attempts: [{ ...attempt, attempt: 2 }], drain: false })) : undefined;
    const first = signal<unknown>();
    const run = async ({ attempt: number, signal: own }: Run) => {
      if (number === 1) return new Promise(() => own.addEventListener("abort", () => first.give(own.reason)));
      isNext.give();
      while (answers === 0) await sleep(5);
      await sleep(200, undefined, { signal: own });
      return 2;
    };
    const { ends } = await ended(context, { beat: late, take }, run);
    assert.equal(String(await first.promise), "Error: lost");
    assert.deepEqual(ends, [{ execution: "1", attempt: 2, outcome: "completed", result: 2 }]);
    assert.equal(answers, 1);
  });

  test(`answer "${list}" about the attempt of a heartbeat ends it`, LIMIT, async (context) => {
    const aborted = signal<unknown>();
    const { server } = await gateway(context, {
      hello,
      beat: (message, session, count) =>
        message["holding"].length === 0 ? beat(message, session, count) : sleep(30, { lost: [], cancel: [], drain: false, [list]: ["1"] }),
      take: (_m, _s, count) => (count === 1 ? taken("1") : undefined),
      finish: () => ({ lost: [] }),
      bye: () => ({}),
    });
    const run = ({ signal: own }: Run) => new Promise(() => own.addEventListener("abort", () => aborted.give(own.reason)));
    await working(server, run, async () => assert.equal(String(await aborted.promise), reason));
  });
}

test("worker that fails ends its attempts and its heartbeats", LIMIT, async (context) => {
  const aborted = signal<unknown>();
  const take: Answer = (_m, _s, count) => (count === 1 ? taken("1") : sleep(50, { page: "of a proxy" }));
  const { server, sent } = await gateway(context, { hello, beat, take });
  const run = ({ signal: own }: Run) => new Promise(() => own.addEventListener("abort", () => aborted.give(own.reason)));
  const worker = new Worker({ server, token: "t", name: "w", slots: 2, onError: () => {}, actions: [action("a.b", (_, attempt) => run(attempt))] });
  await assert.rejects(worker.run(), TypeError);
  assert.equal(String(await aborted.promise), "Error: lost");
  await sleep(100);
  const beats = sent["beat"]!.length;
  await sleep(200);
  assert.equal(sent["beat"]!.length, beats);
});

test("signal and cancel are sent once if their answer is lost", LIMIT, async (context) => {
  for (const lost of ["cut", "status"] as const) {
    const requests: string[] = [];
    const server = createServer((request, response) => {
      requests.push(request.url!);
      if (lost === "cut") request.socket.destroy();
      else response.writeHead(502).end();
    });
    await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));
    context.after(() => server.close());
    const client = new Client({ server: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, token: "t" });
    await assert.rejects(client.signal("a/b", "paid", 25), MayHaveHappened);
    await assert.rejects(client.cancel("a"), MayHaveHappened);
    assert.deepEqual(requests, ["/api/v1/executions/a%2Fb/signal", "/api/v1/executions/a/cancel"]);
  }
});

test("signal is sent again while no server listens, or too many calls are made", LIMIT, async (context) => {
  const { server, sent } = await gateway(context, {
    signal: (_m, _s, count) => (count === 1 ? { status: 429 } : { name: "paid", is_awaited: true, awaits: [], notice: null }),
  });
  const closed = createServer();
  await new Promise<void>((listening) => closed.listen(0, "127.0.0.1", listening));
  const { port } = closed.address() as AddressInfo;
  await new Promise((done) => closed.close(done));
  const client = new Client({ server: `http://127.0.0.1:${port},${server}`, token: "t" });
  assert.equal((await client.signal("a", "paid", 25)).is_awaited, true);
  assert.deepEqual(sent["signal"], [{ name: "paid", value: 25 }, { name: "paid", value: 25 }]);
});
