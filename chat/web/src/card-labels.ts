/** On a phone the admin's lists are cards, and each cell has its column's name before it, in sentence case as elsewhere. */
export function startCardLabels(root: ParentNode = document): void {
  for (const cell of root.querySelectorAll<HTMLElement>("td[data-label], th[data-label]")) {
    const label = cell.dataset.label ?? "";
    cell.dataset.label = label.charAt(0).toLocaleUpperCase() + label.slice(1);
  }
}
