/**
 * The cuts of texts that are too long to send. A worker does not know all secrets, so each cut leaves a mark: the gateway masks the
 * piece of a secret beside one.
 */

/** The mark instead of the end, or the beginning, of a text that was cut. */
const ELLIPSIS = "…";

/** Returns a text with at most `limit` characters, with a mark instead of the end of a longer one. */
export function cutEnd(text: string, limit: number): string {
  return text.length <= limit ? text : text.slice(0, wholeCharacters(text, limit - 1)) + ELLIPSIS;
}

/** Returns a line in parts of at most `limit` characters, with a mark on both sides of each cut. */
export function parts(line: string, limit: number): string[] {
  const cut: string[] = [];
  let rest = line;
  while (rest.length > limit) {
    const end = wholeCharacters(rest, limit - 1);
    cut.push(rest.slice(0, end) + ELLIPSIS);
    rest = ELLIPSIS + rest.slice(end);
  }
  return [...cut, rest];
}

/** Returns the place of a cut before `end` or at it, which divides no surrogate pair: half a pair is not JSON. */
function wholeCharacters(text: string, end: number): number {
  const unit = text.charCodeAt(end - 1);
  return unit >= 0xd800 && unit < 0xdc00 ? end - 1 : end;
}
