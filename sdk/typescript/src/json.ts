/**
 * JSON as Penstock stores it. An integer has up to 64 bits, and a number of JavaScript up to 53: an integer beyond them is a bigint
 * on both sides. A value that would become another one is refused, in the words of the Python library.
 */

import { randomUUID } from "node:crypto";
import { types } from "node:util";
import { textOf } from "./texts.js";

const DEEPEST = 254;
const LONGEST = 2 ** 26;
const LEAST_INTEGER = -(2n ** 63n);
const INTEGER_LIMIT = 2n ** 64n;
const LONE_SURROGATE = /\p{Surrogate}/u;
const LONG_INTEGER = /(?<![\d.eE+-])-?[1-9]\d{15,19}(?![\d.eE])/;
const TEXT_OR_LONG_INTEGER = new RegExp(`"|${LONG_INTEGER.source}`, "g");
/** The begin of a text that replaces a long integer until the reviver reads it. No text from outside begins like this. */
const MARK = randomUUID();

const JSON_HINT = "Use plain objects, arrays, texts, finite numbers, booleans and null";
const INTEGER_HINT = "Send it as text";
export const LARGE_HINT = "Pass on a reference, such as an id or the address of a file";

/** A value that Penstock cannot store. */
export class NotStorable extends TypeError {
  override name = "NotStorable";
}

/** JSON that is already written. `encode` copies it. */
export class Written {
  constructor(readonly json: string) {}
}

/** Returns a value as JSON. A property that is undefined is left out. Throws NotStorable, and calls the value `label`. Beyond
 * `limit` characters it stops: a small value that holds parts of it many times can have any number. */
export function encode(value: unknown, label: string, limit = LONGEST): string {
  const encoder = new Encoder(label, limit);
  try {
    return encoder.write(value, "") ?? "null";
  } catch (error) {
    // A getter, a toJSON() or a proxy may throw anything.
    throw types.isNativeError(error) && error instanceof NotStorable ? error : encoder.fault(error);
  }
}

/** Returns the value of JSON. An integer that is not a safe one is a bigint, and a longer one than 64 bits a number. */
export function parse(text: string): unknown {
  if (!LONG_INTEGER.test(text)) return JSON.parse(text);
  return JSON.parse(marked(text), (_name, value: unknown) =>
    typeof value === "string" && value.startsWith(MARK) ? BigInt(value.slice(MARK.length)) : value,
  );
}

function marked(text: string): string {
  let marked = "";
  let copied = 0;
  TEXT_OR_LONG_INTEGER.lastIndex = 0;
  for (let match; (match = TEXT_OR_LONG_INTEGER.exec(text)) !== null; ) {
    const [token] = match;
    if (token === '"') {
      TEXT_OR_LONG_INTEGER.lastIndex = textEnd(text, match.index);
      continue;
    }
    if (Number.isSafeInteger(Number(token)) || !hasSixtyFourBits(BigInt(token))) continue;
    marked += `${text.slice(copied, match.index)}"${MARK}${token}"`;
    copied = match.index + token.length;
  }
  return marked + text.slice(copied);
}

/** Returns the place behind the text of JSON that begins at `start`. */
function textEnd(text: string, start: number): number {
  for (let quote = start; (quote = text.indexOf('"', quote + 1)) !== -1; ) {
    let escapes = quote;
    while (text[escapes - 1] === "\\") escapes--;
    if ((quote - escapes) % 2 === 0) return quote + 1;
  }
  return text.length;
}

function hasSixtyFourBits(integer: bigint): boolean {
  return integer >= LEAST_INTEGER && integer < INTEGER_LIMIT;
}

class Encoder {
  private readonly place: (string | number)[] = [];
  private readonly open = new Set<object>();
  private size = 0;

  constructor(
    private readonly label: string,
    private readonly limit: number,
  ) {}

  /** Returns the JSON of a value; undefined for undefined. `name` is that of its property. */
  write(value: unknown, name: string): string | undefined {
    if (value instanceof Written) return this.counted(value.json);
    if (typeof value === "object" && value !== null) value = this.converted(value, name);
    switch (typeof value) {
      case "undefined":
        return undefined;
      case "string":
        return this.text(value);
      case "number":
        return this.counted(this.number(value));
      case "boolean":
        return this.counted(String(value));
      case "bigint":
        if (!hasSixtyFourBits(value)) throw this.fault("Integer exceeds 64-bit range", INTEGER_HINT);
        return this.counted(String(value));
      case "object":
        return value === null ? this.counted("null") : this.container(value);
      default:
        throw this.fault(`Type is not JSON serializable: ${typeof value}`);
    }
  }

  fault(reason: unknown, hint = JSON_HINT): NotStorable {
    return new NotStorable(`${this.at()} is not JSON: ${textOf(reason)}. ${hint}.`);
  }

  private at(): string {
    const place = this.place.map((name) => (typeof name === "number" ? `[${name}]` : `.${name}`)).join("");
    return place === "" ? this.label : `${this.label} at ${place.replace(/^\./, "")}`;
  }

  private counted(json: string): string {
    this.size += json.length + 1;
    if (this.size > this.limit) {
      throw new NotStorable(`${this.label} has more than ${this.limit.toLocaleString("en-US")} bytes. ${LARGE_HINT}.`);
    }
    return json;
  }

  private converted(value: object, name: string): unknown {
    if (types.isDate(value) && Number.isNaN(Number(value))) throw this.fault("Invalid Date");
    const convert: unknown = (value as { toJSON?: unknown }).toJSON;
    if (typeof convert === "function") return convert.call(value, name);
    return types.isBoxedPrimitive(value) ? value.valueOf() : value;
  }

  private text(text: string): string {
    if (LONE_SURROGATE.test(text)) throw this.fault("str is not valid UTF-8: surrogates not allowed");
    return this.counted(JSON.stringify(text));
  }

  private number(number: number): string {
    if (!Number.isFinite(number)) {
      const verb = this.place.length === 0 ? "holds" : "is";
      throw new NotStorable(`${this.at()} ${verb} NaN or Infinity, which JSON cannot represent. ${JSON_HINT}.`);
    }
    // JavaScript writes numbers below 1e21 as integers. Beyond 64 bits no integer is stored, and a number is.
    return Number.isInteger(number) && !hasSixtyFourBits(BigInt(number)) ? number.toExponential() : String(number);
  }

  private container(value: object): string {
    if (this.open.has(value) || this.open.size >= DEEPEST) throw this.fault("Recursion limit reached");
    this.open.add(value);
    const json = Array.isArray(value) ? this.array(value) : this.object(value);
    this.open.delete(value);
    return json;
  }

  private array(values: unknown[]): string {
    const items: string[] = [];
    for (let index = 0; index < values.length; index++) items.push(this.inside(values[index], index) ?? this.counted("null"));
    return `[${items.join(",")}]`;
  }

  private object(value: object): string {
    const kind = Object.prototype.toString.call(value).slice("[object ".length, -1);
    // A Map, a Set, a Promise or an Error would become {}.
    if (kind !== "Object") throw this.fault(`Type is not JSON serializable: ${kind}`);
    const members: string[] = [];
    for (const [name, member] of Object.entries(value)) {
      const json = this.inside(member, name);
      if (json !== undefined) members.push(`${this.text(name)}:${json}`);
    }
    return `{${members.join(",")}}`;
  }

  private inside(value: unknown, name: string | number): string | undefined {
    this.place.push(name);
    const json = this.write(value, String(name));
    this.place.pop();
    return json;
  }
}
