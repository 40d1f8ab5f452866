/** What differs between two texts, line by line. Pure. Source: Myers, "An O(ND) Difference Algorithm" (1986). */

export interface DiffLine {
  change: "same" | "added" | "removed";
  text: string;
  /** Numbers of the line before and after; null where it is not. */
  before: number | null;
  after: number | null;
}

interface Fold {
  change: "fold";
  count: number;
}

const MOST_EDITS = 2_000;
/** Equal lines around a change that are shown. */
const AROUND = 3;

export function diffLines(before: string, after: string): DiffLine[] {
  const a = linesOf(before);
  const b = linesOf(after);
  let start = 0;
  while (start < a.length && start < b.length && a[start] === b[start]) start += 1;
  let end = 0;
  while (
    end < a.length - start &&
    end < b.length - start &&
    a[a.length - 1 - end] === b[b.length - 1 - end]
  ) {
    end += 1;
  }
  const lines: DiffLine[] = [];
  const same = (i: number, j: number) =>
    lines.push({ change: "same", text: a[i] as string, before: i + 1, after: j + 1 });
  const removed = (i: number) =>
    lines.push({ change: "removed", text: a[i] as string, before: i + 1, after: null });
  const added = (j: number) =>
    lines.push({ change: "added", text: b[j] as string, before: null, after: j + 1 });
  for (let i = 0; i < start; i += 1) same(i, i);
  const pairs = common(a.slice(start, a.length - end), b.slice(start, b.length - end));
  let i = start;
  let j = start;
  for (const [x, y] of [...pairs, [a.length - end - start, b.length - end - start] as const]) {
    while (i < start + x) removed(i++);
    while (j < start + y) added(j++);
    if (i < a.length - end && j < b.length - end) same(i++, j++);
  }
  for (let k = end; k > 0; k -= 1) same(a.length - k, b.length - k);
  return lines;
}

/** The same with long runs of equal lines folded. */
export function folded(lines: readonly DiffLine[]): (DiffLine | Fold)[] {
  const isNear = new Array<boolean>(lines.length).fill(false);
  lines.forEach((line, at) => {
    if (line.change === "same") return;
    for (let k = Math.max(0, at - AROUND); k <= Math.min(lines.length - 1, at + AROUND); k += 1) {
      isNear[k] = true;
    }
  });
  const shown: (DiffLine | Fold)[] = [];
  lines.forEach((line, at) => {
    const last = shown.at(-1);
    if (isNear[at]) shown.push(line);
    else if (last?.change === "fold") last.count += 1;
    else shown.push({ change: "fold", count: 1 });
  });
  return shown;
}

function linesOf(text: string): string[] {
  if (text === "") return [];
  const lines = text.split(/\r?\n/);
  if (lines.at(-1) === "") lines.pop();
  return lines;
}

/** Pairs of equal lines, in order; none where the texts differ too much to be worth the search. */
function common(a: readonly string[], b: readonly string[]): (readonly [number, number])[] {
  const n = a.length;
  const m = b.length;
  if (n === 0 || m === 0) return [];
  const most = Math.min(n + m, MOST_EDITS);
  const trace: Int32Array[] = [];
  const reach = new Int32Array(2 * most + 2);
  for (let d = 0; d <= most; d += 1) {
    trace.push(reach.slice(most - d, most + d + 2));
    for (let k = -d; k <= d; k += 2) {
      const isDown = k === -d || (k !== d && at(reach, most + k - 1) < at(reach, most + k + 1));
      let x = isDown ? at(reach, most + k + 1) : at(reach, most + k - 1) + 1;
      let y = x - k;
      while (x < n && y < m && a[x] === b[y]) {
        x += 1;
        y += 1;
      }
      reach[most + k] = x;
      if (x >= n && y >= m) return walkBack(trace, d, n, m);
    }
  }
  return [];
}

const at = (row: Int32Array, index: number): number => row[index] ?? 0;

function walkBack(trace: Int32Array[], edits: number, n: number, m: number): (readonly [number, number])[] {
  const pairs: (readonly [number, number])[] = [];
  let x = n;
  let y = m;
  for (let d = edits; d >= 0; d -= 1) {
    const row = trace[d] as Int32Array; // of diagonals -d to d + 1
    const k = x - y;
    const isDown = k === -d || (k !== d && at(row, d + k - 1) < at(row, d + k + 1));
    const from = isDown ? k + 1 : k - 1;
    const fromX = d === 0 ? 0 : at(row, d + from);
    const fromY = d === 0 ? 0 : fromX - from;
    const stepX = d === 0 ? 0 : isDown ? fromX : fromX + 1;
    while (x > stepX && y > 0) {
      x -= 1;
      y -= 1;
      pairs.push([x, y]);
    }
    x = fromX;
    y = fromY;
  }
  return pairs.reverse();
}
