/** The ends of attempts. The code of an action may return and throw anything: each function here returns an end, and throws nothing. */

import { types } from "node:util";
import { cutEnd } from "./cuts.js";
import { Defer, NonRetryable, Retry } from "./errors.js";
import { LARGE_HINT, NotStorable, Written, encode } from "./json.js";
import type { ActionError, End } from "./protocol.js";
import { textOf } from "./texts.js";

const LONGEST_TYPE = 500;
const LONGEST_MESSAGE = 16_000;
const LONGEST_TRACEBACK = 32_000;
const LONGEST_REFUSED_MESSAGE = 2_000;
const MOST_KINDS = 50;
const MOST_MEMBERS = 100;
const LONGEST_DURATION_S = 300_000_000;
const LAST_YEAR = 8999;
/** How many times as large as the limit a value may be so that its size is told. */
const SIZED = 4;

type Deferral = Pick<Defer, "when" | "state">;

/** Returns the end of an attempt that returned a value. At most `limit` bytes of JSON are stored. */
export function returned(result: unknown, limit: number): End {
  try {
    return { outcome: "completed", result: storable(result, "the result", limit) };
  } catch (error) {
    return { outcome: "failed", error: notStorable(read(() => (error as Error).message)) };
  }
}

/** Returns the end of an attempt that threw a value. A group of nothing but deferrals defers until the last of them. */
export function thrown(error: unknown, limit: number): End {
  const members = leaves(error);
  if (!members.every((member) => hasPrototype(member, Defer))) return { outcome: "failed", error: described(error) };
  try {
    return deferred(latest(members as [Defer, ...Defer[]]), limit);
  } catch (fault) {
    const failure = hasPrototype(fault, NotStorable) ? notStorable(read(() => (fault as Error).message)) : described(fault);
    const { traceback = "" } = described(error); // it names the line of the Defer
    return { outcome: "failed", error: { ...failure, traceback } };
  }
}

/** Returns the end instead of one that the gateway has refused; undefined if nothing in that end is from the action. */
export function refusedEnd(end: End, refusal: string): End | undefined {
  const text = cutEnd(`the gateway refused the end of this attempt: ${refusal}`, LONGEST_REFUSED_MESSAGE);
  if (end.outcome === "completed" || end.outcome === "deferred") return { outcome: "failed", error: notStorable(text) };
  if (end.outcome !== "failed") return undefined;
  const { type, message, retryable } = end.error;
  const first = cutEnd(message, LONGEST_REFUSED_MESSAGE);
  return { outcome: "failed", error: { type, message: `${first}. And ${text}`, ...(retryable === undefined ? {} : { retryable }) } };
}

function storable(value: unknown, label: string, limit: number): Written {
  const json = encode(value, label, SIZED * limit);
  const size = Buffer.byteLength(json);
  if (size > limit) {
    const counts = [size, limit].map((count) => count.toLocaleString("en-US"));
    throw new NotStorable(`${label} has ${counts[0]} bytes; at most ${counts[1]} are stored. ${LARGE_HINT}.`);
  }
  return new Written(json);
}

function notStorable(message: unknown): ActionError {
  return { type: "ResultNotStorable", message: cutEnd(textOf(message), LONGEST_MESSAGE), retryable: false };
}

function deferred({ when, state }: Deferral, limit: number): End {
  const { delay, until }: { delay?: unknown; until?: unknown } = when;
  if ((delay === undefined) === (until === undefined)) throw new TypeError("Defer takes exactly one of until and delay");
  const written = storable(state, "the state of Defer", limit);
  if (until === undefined) {
    if (!isDuration(delay)) throw new RangeError(wrongDuration("delay", delay));
    return { outcome: "deferred", delay, state: written };
  }
  const year = types.isDate(until) ? until.getUTCFullYear() : NaN;
  if (!(year >= 1970 && year <= LAST_YEAR)) {
    throw new RangeError(`until must be a Date between the years 1970 and ${LAST_YEAR}, not ${brief(until)}`);
  }
  return { outcome: "deferred", until: (until as Date).toISOString(), state: written };
}

/** Returns the deferral that ends last, with the state of the first. An instant ends later than a delay. */
function latest(deferrals: [Defer, ...Defer[]]): Deferral {
  const [{ state }] = deferrals;
  const instant = ({ when }: Defer) => ("until" in when ? Number(when.until) : -1);
  const delay = ({ when }: Defer) => ("delay" in when ? Number(when.delay) : 0);
  const last = deferrals.reduce((a, b) => (instant(b) - instant(a) || delay(b) - delay(a)) > 0 ? b : a);
  return { when: last.when, state };
}

function isDuration(value: unknown): value is number {
  return typeof value === "number" && value >= 0 && value <= LONGEST_DURATION_S;
}

function wrongDuration(name: string, value: unknown): string {
  const limit = LONGEST_DURATION_S.toLocaleString("en-US");
  return `${name} must be a number of seconds from 0 to ${limit}, not ${brief(value)}`;
}

function brief(value: unknown): string {
  return cutEnd(textOf(typeof value === "string" ? JSON.stringify(value) : value), 100);
}

/** Returns what is stored of an error. */
function described(error: unknown): ActionError {
  if (!types.isNativeError(error) && !hasPrototype(error, Error)) {
    return { type: "Error", message: cutEnd(textOf(error), LONGEST_MESSAGE) };
  }
  const kinds = kindsOf(error);
  const stored: ActionError = {
    type: kinds[0] ?? "Error",
    message: cutEnd(textOf(property(error, "message")), LONGEST_MESSAGE),
    traceback: cutEnd(stackOf(error), LONGEST_TRACEBACK),
    kinds,
  };
  const members = leaves(error);
  if (isGroup(error)) stored.members = members.map(kindsOf);
  if (members.some((member) => hasPrototype(member, NonRetryable))) {
    stored.retryable = false;
    return stored;
  }
  const retries = members.filter((member) => hasPrototype(member, Retry));
  if (retries.length === 0) return stored;
  stored.retryable = true;
  for (const after of retries.map((retry) => property(retry, "after"))) {
    if (isDuration(after)) stored.retry_after = Math.max(after, stored.retry_after ?? 0);
    else if (after !== undefined && after !== null) {
      stored.message += `. ${wrongDuration("after", after)}. The retry policy decides when it is retried`;
    }
  }
  return stored;
}

/** Returns the errors in a group and in its nested groups, at most MOST_MEMBERS, or the value itself if it is not a group. */
function leaves(error: unknown): unknown[] {
  const found: unknown[] = [];
  const groups = new Set<unknown>();
  const add = (value: unknown) => {
    if (found.length >= MOST_MEMBERS || groups.has(value)) return; // a group may contain itself
    const members = isGroup(value) ? membersOf(value) : [];
    if (members.length === 0 || groups.size >= MOST_MEMBERS) {
      found.push(value);
      return;
    }
    groups.add(value);
    members.forEach(add);
  };
  add(error);
  return found.length > 0 ? found : [error];
}

function isGroup(value: unknown): boolean {
  return hasPrototype(value, AggregateError) && membersOf(value).length > 0;
}

/** Returns the direct members of a group. The code of an action may have replaced them by anything. */
function membersOf(group: unknown): unknown[] {
  const members = property(group, "errors");
  const copy = read(() => (Array.isArray(members) ? Array.from(members.slice(0, MOST_MEMBERS)) : []));
  return Array.isArray(copy) ? copy : [];
}

/** Returns the names of an error's class and of its bases. */
function kindsOf(error: unknown): string[] {
  if (!types.isNativeError(error) && !hasPrototype(error, Error)) return ["Error"];
  const classes = prototypes(error).map((prototype) => read(() => (prototype as { constructor: Function }).constructor.name));
  const names = [property(error, "name"), ...classes.filter((kind) => kind !== "Object")].filter(isName).map(cutName);
  return [...new Set(names.length > 0 ? names : ["Error"])].slice(0, MOST_KINDS);
}

/** Returns the stack of an error, and behind that of a group those of its members. */
function stackOf(error: unknown): string {
  const stack = textOf(property(error, "stack") ?? "");
  if (!isGroup(error)) return stack;
  const members = leaves(error).map((member, index) => {
    const text = textOf(types.isNativeError(member) ? property(member, "stack") ?? "" : member);
    return `[errors ${index + 1}] ${cutEnd(text, LONGEST_TRACEBACK)}`.replaceAll("\n", "\n    ");
  });
  return [stack, ...members].join("\n  ");
}

/** Returns a property of an error. The code of an action may have replaced it, also by a getter that throws. */
function property(error: unknown, name: string): unknown {
  return read(() => (error as { [name: string]: unknown })[name]);
}

function isName(name: unknown): name is string {
  return typeof name === "string" && name !== "";
}

function cutName(name: string): string {
  return cutEnd(textOf(name), LONGEST_TYPE);
}

function read(get: () => unknown): unknown {
  try {
    return get();
  } catch {
    return undefined;
  }
}

/** Returns the prototypes of a value, at most MOST_KINDS: a proxy may name itself as its own. */
function prototypes(value: unknown): object[] {
  const chain: object[] = [];
  const next = (object: unknown) => read(() => Object.getPrototypeOf(object) as unknown) as object | null | undefined;
  for (let prototype = next(value); prototype && chain.length < MOST_KINDS; prototype = next(prototype)) chain.push(prototype);
  return chain;
}

/** Returns whether a value is an instance of a class. `instanceof` may throw, or never end, for a proxy. */
function hasPrototype(value: unknown, kind: { prototype: object }): boolean {
  return prototypes(value).includes(kind.prototype);
}
