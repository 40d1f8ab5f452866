/** Two texts that grew out of one, of which neither writer has seen the other. Pure. */

/** Where one text differs from another, as one piece. */
interface Change {
  /** Of the text from before: what is replaced. */
  start: number;
  end: number;
  words: string;
}

function changeOf(before: string, after: string): Change {
  const most = Math.min(before.length, after.length);
  let start = 0;
  while (start < most && before[start] === after[start]) start += 1;
  let tail = 0;
  while (tail < most - start && before.at(-1 - tail) === after.at(-1 - tail)) tail += 1;
  return { start, end: before.length - tail, words: after.slice(start, after.length - tail) };
}

/** Whether one ends before the other begins; two that add something at one place do not. */
const isBefore = (a: Change, b: Change): boolean =>
  a.end < b.start || (a.end === b.start && (a.start < a.end || b.start < b.end));

/** Nothing of them is lost: where one holds the other it is both. */
export function together(theirs: string, ours: string): string {
  if (theirs.includes(ours.trim())) return theirs;
  return ours.includes(theirs.trim()) ? ours : `${theirs}\n\n${ours}`;
}

/** What both have made of a text: changes at different places are both there, else both texts are. */
export function merged(before: string, theirs: string, ours: string): string {
  if (ours === before) return theirs;
  if (theirs === before) return ours;
  const both = together(theirs, ours);
  if (both === theirs || both === ours) return both;
  const [a, b] = [changeOf(before, theirs), changeOf(before, ours)];
  const [first, last] = isBefore(a, b) ? [a, b] : [b, a];
  if (!isBefore(first, last)) return both;
  return (
    before.slice(0, first.start) +
    first.words +
    before.slice(first.end, last.start) +
    last.words +
    before.slice(last.end)
  );
}
