/** Tables of answers: sorted by a click on a header, copied as CSV. */
import t from "../texts/reading";
import { copyButton } from "./code";

type Order = "ascending" | "descending" | "none";
const NEXT: Record<Order, Order> = { none: "ascending", ascending: "descending", descending: "none" };

/** The number that a cell holds beside its currency, unit or percent sign, else null. Pure. */
export function numberIn(text: string): number | null {
  const clean = text.replace(/[\s\u00a0\u202f]/g, "").replace(/^[~≈]|^[€$£¥]|[€$£¥%]$/g, "");
  const match = /^([+\-−]?)(\d{1,3}(?:,\d{3})+|\d+)(\.\d+)?(?:e[+-]?\d+)?$/i.exec(clean);
  if (!match) return null;
  return Number(clean.replaceAll(",", "").replace("−", "-"));
}

/** How two cells of a column stand to each other: as numbers where all are, else as words. Pure. */
export function comparing(cells: readonly string[]): (a: string, b: string) => number {
  const filled = cells.filter((cell) => cell !== "");
  const areNumbers = filled.length > 0 && filled.every((cell) => numberIn(cell) !== null);
  return (a, b) => {
    if (a === "" || b === "") return Number(a === "") - Number(b === "");
    if (areNumbers) return (numberIn(a) ?? 0) - (numberIn(b) ?? 0);
    return a.localeCompare(b, undefined, { numeric: true, sensitivity: "base" });
  };
}

/**
 * RFC 4180. A cell that a spreadsheet would take for a formula gets an apostrophe, for it is a model's or a tool's.
 * Pure.
 */
export function csvOf(rows: readonly (readonly string[])[]): string {
  const cell = (text: string) => {
    const safe = /^[=+\-@\t\r]/.test(text) && numberIn(text) === null ? `'${text}` : text;
    return /[",\n\r]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
  };
  return `${rows.map((row) => row.map(cell).join(",")).join("\r\n")}\r\n`;
}

const textOf = (cell: Element | null | undefined): string => (cell?.textContent ?? "").trim();

export function finishTable(box: HTMLElement): void {
  const table = box.querySelector("table");
  const body = table?.tBodies[0];
  if (!table || !body || box.querySelector("button")) return;
  const heads = [...table.querySelectorAll("thead th")];
  const rows = [...body.rows];
  const sortBy = (column: number, order: Order) => {
    const before = comparing(rows.map((row) => textOf(row.cells[column])));
    const sorted = [...rows];
    if (order !== "none") {
      const sign = order === "ascending" ? 1 : -1;
      sorted.sort((a, b) => {
        const [x, y] = [textOf(a.cells[column]), textOf(b.cells[column])];
        return x === "" || y === "" ? before(x, y) : sign * before(x, y); // empty cells stay last
      });
    }
    body.replaceChildren(...sorted);
    heads.forEach((head, at) => {
      if (at === column && order !== "none") head.setAttribute("aria-sort", order);
      else head.removeAttribute("aria-sort");
    });
  };
  if (rows.length > 1) {
    heads.forEach((head, column) => {
      if (!textOf(head) || head.querySelector("a")) return;
      const button = document.createElement("button");
      button.type = "button";
      button.className = "md-sort";
      button.append(...head.childNodes);
      button.addEventListener("click", () => {
        sortBy(column, NEXT[(head.getAttribute("aria-sort") as Order | null) ?? "none"]);
      });
      head.append(button);
    });
  }
  const tools = document.createElement("div");
  tools.className = "md-table-tools";
  const count = document.createElement("span");
  count.textContent = t.rows(rows.length);
  const everything = () => [heads.map(textOf), ...[...body.rows].map((row) => [...row.cells].map(textOf))];
  tools.append(
    count,
    copyButton(() => csvOf(everything()), t.copyCsv),
  );
  box.after(tools);
}
