import t from "../texts/pages";

/** On a phone the admin's lists are cards, and each cell has its column's name before it, in sentence case as elsewhere. */
export function startCardLabels(root: ParentNode = document): void {
  for (const cell of root.querySelectorAll<HTMLElement>("td[data-label], th[data-label]")) {
    const label = cell.dataset.label ?? "";
    cell.dataset.label = label.charAt(0).toLocaleUpperCase() + label.slice(1);
  }
  // The package calls each box the same.
  for (const box of root.querySelectorAll(".action-checkbox input")) {
    const name = box.closest("td")?.nextElementSibling?.textContent?.trim();
    if (name) box.setAttribute("aria-label", t.selectRow(name));
  }
}

/**
 * Give each cell of a page's tables the name of its column, which stands above it where rows are cards.
 *
 * What names a row is the heading of its card and gets none. The label of a cell that shows nothing is empty.
 */
export function labelTables(root: ParentNode = document): void {
  for (const table of root.querySelectorAll<HTMLTableElement>("table.data-table")) {
    const names = [...(table.tHead?.rows[0]?.cells ?? [])].map((one) => one.textContent.trim());
    for (const row of [...table.tBodies].flatMap((body) => [...body.rows])) {
      [...row.cells].forEach((cell, column) => {
        if (cell.scope === "row") return;
        const isEmpty = !cell.textContent.trim() && !cell.firstElementChild;
        cell.dataset.label = isEmpty ? "" : (names[column] ?? "");
      });
    }
  }
}
