/** Quoted passages in what a person writes: lines that begin with `>`, as in Markdown and mails. Pure. */

const LONGEST = 4_000;
const QUOTED = /^> ?/;

/** A text with a passage quoted at its end, and room for what is said about it. */
export function withQuote(text: string, passage: string): string {
  const lines = passage.trim().slice(0, LONGEST).split(/\r?\n/);
  const quote = lines.map((line) => `> ${line.trimEnd()}`.trimEnd()).join("\n");
  const before = text.trimEnd();
  return `${before}${before && "\n\n"}${quote}\n\n`;
}

interface Passage {
  text: string;
  isQuote: boolean;
}

/** What was written, in passages that are quoted or not. */
export function passagesOf(text: string): Passage[] {
  const found: { lines: string[]; isQuote: boolean }[] = [];
  for (const line of text.split("\n")) {
    const isQuote = QUOTED.test(line);
    const last = found.at(-1);
    const shown = isQuote ? line.replace(QUOTED, "") : line;
    if (last?.isQuote === isQuote) last.lines.push(shown);
    else found.push({ lines: [shown], isQuote });
  }
  return found
    .map(({ lines, isQuote }) => {
      const whole = lines.join("\n");
      // The empty lines around a quote are its distance.
      return { text: found.length > 1 ? whole.replace(/^\n+|\n+$/g, "") : whole, isQuote };
    })
    .filter((one) => one.text !== "");
}
