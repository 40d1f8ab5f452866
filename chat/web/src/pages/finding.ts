/**
 * Long lists are narrowed by typing: the options of a select, or the rows of a table, that have `data-findable`. Its value
 * is what the field is called. Nothing is chosen or lost by it: what is hidden stays as it was.
 */
import t from "../texts/pages";

/** Shorter lists are read faster than a word is typed. */
const FINDABLE_FROM = 12;

const plain = (text: string): string => text.normalize("NFKD").toLowerCase();

/** Whether each of the words that were typed is in a text. */
export function fits(text: string, typed: string): boolean {
  const low = plain(text);
  return plain(typed)
    .split(/\s+/)
    .every((word) => low.includes(word));
}

interface Finder {
  box: HTMLElement;
  field: HTMLInputElement;
  found: HTMLElement;
}

let count = 0;

function finderOf(label: string, narrow: (typed: string) => string): Finder {
  const box = document.createElement("div");
  box.className = "finder";
  const field = document.createElement("input");
  field.type = "search";
  field.className = "control";
  field.placeholder = label;
  field.setAttribute("aria-label", label);
  field.autocomplete = "off";
  const found = document.createElement("p");
  found.className = "help";
  found.setAttribute("role", "status");
  found.id = `finder-${(count += 1)}`;
  field.setAttribute("aria-describedby", found.id);
  field.addEventListener("input", (event) => {
    event.stopPropagation(); // a form that waits for changes has none
    found.textContent = narrow(field.value.trim());
  });
  box.append(field, found);
  return { box, field, found };
}

function narrowTable(table: HTMLTableElement): void {
  const rows = [...table.tBodies].flatMap((body) => [...body.rows]);
  if (rows.length < FINDABLE_FROM) return;
  const { box, field } = finderOf(table.dataset.findable ?? "", (typed) => {
    let shown = 0;
    for (const row of rows) {
      row.hidden = !fits(row.cells[0]?.textContent ?? "", typed);
      if (!row.hidden) shown += 1;
    }
    return typed ? t.found(shown, rows.length) : "";
  });
  field.addEventListener("keydown", (event) => {
    if (event.key === "Enter") event.preventDefault(); // it would send the form around the table
  });
  const place = table.closest(".table-scroll") ?? table;
  box.classList.add("panel-body");
  place.before(box);
}

function narrowSelect(select: HTMLSelectElement): void {
  const groups: [parent: Element, options: HTMLOptionElement[]][] = [
    ...[...select.children].map((child): [Element, HTMLOptionElement[]] =>
      child instanceof HTMLOptionElement ? [select, [child]] : [child, [...child.querySelectorAll("option")]],
    ),
  ];
  const all = [...select.options];
  if (all.length < FINDABLE_FROM) return;
  const groupOf = (option: HTMLOptionElement) =>
    (option.parentElement as HTMLOptGroupElement | null)?.label ?? "";
  const words = new Map(all.map((one) => [one, `${groupOf(one)} ${one.text}`]));
  const matches = (one: HTMLOptionElement, typed: string) => fits(words.get(one) ?? "", typed);
  const { box, field } = finderOf(select.dataset.findable ?? "", (typed) => {
    const chosen = select.selectedOptions[0];
    let shown = 0;
    // Some browsers list options that are hidden, so what does not fit is taken out. The choice stays.
    for (const child of [...select.children]) child.remove();
    for (const [parent, options] of groups) {
      for (const one of options) one.remove();
      const left = options.filter((one) => one === chosen || matches(one, typed));
      shown += left.filter((one) => matches(one, typed)).length;
      if (parent === select) select.append(...left);
      else if (left.length > 0) {
        parent.append(...left);
        select.append(parent);
      }
    }
    if (chosen) chosen.selected = true;
    return typed ? t.foundChoices(shown, all.length) : "";
  });
  field.addEventListener("keydown", (event) => {
    if (event.key !== "Enter") return;
    event.preventDefault();
    const first = [...select.options].find((one) => matches(one, field.value.trim()));
    if (!first || field.value.trim() === "") return;
    first.selected = true;
    for (const kind of ["input", "change"]) select.dispatchEvent(new Event(kind, { bubbles: true }));
    select.focus();
  });
  select.before(box);
}

export function startFinding(root: ParentNode = document): void {
  for (const table of root.querySelectorAll<HTMLTableElement>("table[data-findable]")) narrowTable(table);
  for (const select of root.querySelectorAll<HTMLSelectElement>("select[data-findable]"))
    narrowSelect(select);
}
