import { inspect } from "node:util";

const LONE_SURROGATE = /\p{Surrogate}/gu;

/** Returns a text without lone surrogates, which no gateway takes. U+FFFD replaces each. */
export function wellFormed(text: string): string {
  return text.replace(LONE_SURROGATE, "\ufffd");
}

/** Returns the text of any value, as `console.log` prints it. */
export function textOf(value: unknown): string {
  try {
    return wellFormed(typeof value === "string" ? value : inspect(value));
  } catch {
    return "<a value that cannot be printed>";
  }
}
