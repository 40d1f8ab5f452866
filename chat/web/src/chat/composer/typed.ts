/** What is being typed after a sign: `/` for commands, `@` for buds, `#` for files. Pure. */

export type Sign = "/" | "@" | "#";

export interface Typed {
  sign: Sign;
  /** What follows the sign, in lower case. */
  word: string;
  /** Where the sign and the word stand in the text. */
  start: number;
  end: number;
}

const COMMAND = /^\/([^\s/]*)(?=\s|$)/;
const NAME = /(?:^|\s)([@#])([\p{L}\p{N}._-]{0,40})$/u;

/** What is being typed before the caret. A command stands at the beginning; a name stands anywhere behind a space. */
export function typedAt(text: string, caret: number): Typed | null {
  const command = COMMAND.exec(text);
  if (command && caret <= command[0].length) {
    return { sign: "/", word: (command[1] ?? "").toLowerCase(), start: 0, end: command[0].length };
  }
  const before = text.slice(0, caret);
  const name = NAME.exec(before);
  if (!name) return null;
  const word = name[2] ?? "";
  const start = before.length - word.length - 1;
  return { sign: name[1] as Sign, word: word.toLowerCase(), start, end: before.length };
}

/** The text without it; the words around it keep one space between them. */
export function withoutTyped(text: string, { start, end }: Typed): string {
  const before = text.slice(0, start);
  const after = text.slice(end);
  return before + (before.endsWith(" ") || before === "" ? after.replace(/^ /, "") : after);
}

/** Those whose name begins with, or else contains, what was typed; the best first. */
export function byName<T>(rows: readonly T[], nameOf: (row: T) => string, word: string): T[] {
  const rank = (row: T): number => {
    const name = nameOf(row).toLowerCase();
    if (name.startsWith(word)) return 0;
    return name.includes(word) ? 1 : 2;
  };
  return rows.filter((row) => rank(row) < 2).sort((a, b) => rank(a) - rank(b));
}
