/** A table out of text, bounded: what is beyond is counted, not drawn. Pure. */

export interface Table {
  rows: string[][];
  /** Rows that are not among them. */
  more: number;
  /** Columns that were left out. */
  cut: number;
}

const MOST_ROWS = 500;
const MOST_COLUMNS = 50;
const MOST_CELL = 500;

/** RFC 4180, with whichever of comma, semicolon and tab the first line has most of. */
export function parseTable(text: string, mostRows = MOST_ROWS, mostColumns = MOST_COLUMNS): Table {
  const separator = separatorOf(text);
  const rows: string[][] = [];
  let row: string[] = [];
  let cell = "";
  let isQuoted = false;
  let more = 0;
  let columns = 0;
  let cut = 0;

  const endCell = () => {
    if (row.length < mostColumns) row.push(cell.length > MOST_CELL ? `${cell.slice(0, MOST_CELL)}…` : cell);
    columns += 1;
    cell = "";
  };
  const endRow = () => {
    endCell();
    cut = Math.max(cut, columns - mostColumns);
    columns = 0;
    if (row.length > 1 || row[0] !== "") {
      if (rows.length < mostRows) rows.push(row);
      else more += 1;
    }
    row = [];
  };

  for (let i = 0; i < text.length; i += 1) {
    const c = text[i] as string;
    if (isQuoted) {
      if (c !== '"') cell += c;
      else if (text[i + 1] === '"') {
        cell += '"';
        i += 1;
      } else isQuoted = false;
    } else if (c === '"' && cell === "") isQuoted = true;
    else if (c === separator) endCell();
    else if (c === "\n") endRow();
    else if (c !== "\r" || text[i + 1] !== "\n") cell += c;
  }
  if (cell !== "" || row.length > 0) endRow();
  return { rows, more, cut };
}

function separatorOf(text: string): string {
  const line = text.slice(0, 10_000).split("\n", 1)[0] ?? "";
  const counts = [",", ";", "\t"].map((mark) => [mark, line.split(mark).length] as const);
  return counts.reduce((best, one) => (one[1] > best[1] ? one : best))[0];
}
