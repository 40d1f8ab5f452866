/** A field for filters of the log: completes names and values of filters, as a combobox with a list. */
import t from "../texts/pages";

export interface Known {
  /** Name of a filter, and a word of help. */
  keys: [string, string][];
  values: Record<string, string[]>;
}

export interface Offer {
  text: string;
  help: string;
  /** What stands in the field once it is taken. */
  value: string;
  caret: number;
}

const MOST = 12;
const quoted = (value: string) =>
  /[\s"]/.test(value) ? `"${value.replaceAll("\\", "\\\\").replaceAll('"', '\\"')}"` : value;

/** The term at the caret: from the last blank that stands in no quotation. */
export function termAt(text: string, caret: number): { from: number; to: number } {
  let from = 0;
  let isQuoted = false;
  for (let i = 0; i < caret; i++) {
    if (text[i] === "\\" && isQuoted) i++;
    else if (text[i] === '"') isQuoted = !isQuoted;
    else if (!isQuoted && /\s/.test(text[i] ?? "")) from = i + 1;
  }
  const rest = isQuoted ? text.slice(caret).indexOf('"') + 1 : text.slice(caret).search(/\s/);
  return { from, to: rest > 0 || (rest === 0 && !isQuoted) ? caret + rest : text.length };
}

function ranked(all: string[], wanted: string): string[] {
  const low = wanted.toLowerCase();
  const starts = all.filter((one) => one.toLowerCase().startsWith(low));
  const holds = all.filter((one) => !starts.includes(one) && one.toLowerCase().includes(low));
  return [...starts, ...holds].slice(0, MOST);
}

export function offersFor(text: string, caret: number, known: Known): Offer[] {
  const { from, to } = termAt(text, caret);
  const typed = text.slice(from, caret);
  const colon = typed.indexOf(":");
  const put = (term: string, shown: string, help: string): Offer => {
    const value = text.slice(0, from) + term + text.slice(to);
    return { text: shown, help, value, caret: from + term.length };
  };
  if (typed.startsWith('"')) return [];
  if (colon < 0) {
    const helps = new Map(known.keys);
    return ranked([...helps.keys()], typed).map((name) => put(`${name}:`, `${name}:`, helps.get(name) ?? ""));
  }
  const name = typed.slice(0, colon).toLowerCase();
  const wanted = typed.slice(colon + 1).replace(/^"/, "");
  const values = known.values[name] ?? [];
  if (values.includes(wanted)) return [];
  const end = to === text.length ? " " : "";
  return ranked(values, wanted).map((value) => put(`${name}:${quoted(value)}${end}`, value, ""));
}

/** Complete the page's field for filters, if it has one. */
export function startSearchOfPage(): void {
  const input = document.querySelector<HTMLInputElement>("[data-filter-text]");
  if (!input) return;
  if (input.form?.method === "get")
    input.form.addEventListener("formdata", (event) => leaveOutEmpty(event.formData));
  const known = document.getElementById(input.dataset.filterText ?? "");
  if (known) startSearch(input, JSON.parse(known.textContent ?? "{}") as Known);
}

/** So that the address names what was chosen, and no forty fields that were not. */
function leaveOutEmpty(body: FormData): void {
  for (const [name, value] of [...body]) if (value === "") body.delete(name);
}

export function startSearch(input: HTMLInputElement, known: Known): void {
  if (!input.parentElement?.classList.contains("filter-search")) {
    // A form's own field: the list needs a box to hang on.
    const box = document.createElement("div");
    box.className = "filter-search";
    input.replaceWith(box);
    box.append(input);
  }
  const list = document.createElement("ul");
  list.id = `${input.id}-offers`;
  list.className = "filter-offers";
  list.setAttribute("role", "listbox");
  list.setAttribute("aria-label", t.filters);
  list.hidden = true;
  input.after(list);
  input.setAttribute("role", "combobox");
  input.setAttribute("aria-autocomplete", "list");
  input.setAttribute("aria-expanded", "false");
  input.setAttribute("aria-controls", list.id);
  let offers: Offer[] = [];
  let chosen = -1;

  function show(found: Offer[]): void {
    offers = found;
    chosen = -1;
    list.replaceChildren(
      ...offers.map((offer, i) => {
        const item = document.createElement("li");
        item.id = `${list.id}-${i}`;
        item.setAttribute("role", "option");
        item.setAttribute("aria-selected", "false");
        const name = document.createElement("span");
        name.textContent = offer.text;
        item.append(name);
        if (offer.help) {
          const help = document.createElement("span");
          help.className = "help";
          help.textContent = offer.help;
          item.append(help);
        }
        // Before the field loses the focus, which would close the list.
        item.addEventListener("pointerdown", (event) => {
          event.preventDefault();
          take(i);
        });
        return item;
      }),
    );
    list.hidden = offers.length === 0;
    input.setAttribute("aria-expanded", String(offers.length > 0));
    input.removeAttribute("aria-activedescendant");
  }

  function choose(next: number): void {
    list.children[chosen]?.setAttribute("aria-selected", "false");
    chosen = (next + offers.length) % offers.length;
    const item = list.children[chosen];
    item?.setAttribute("aria-selected", "true");
    item?.scrollIntoView({ block: "nearest" });
    if (item) input.setAttribute("aria-activedescendant", item.id);
  }

  function take(index: number): void {
    const offer = offers[index];
    if (!offer) return;
    input.value = offer.value;
    input.setSelectionRange(offer.caret, offer.caret);
    complete();
  }

  function complete(): void {
    show(offersFor(input.value, input.selectionStart ?? input.value.length, known));
  }

  input.addEventListener("input", complete);
  input.addEventListener("click", complete);
  input.addEventListener("blur", () => show([]));
  input.addEventListener("keydown", (event) => {
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      if (list.hidden) complete();
      if (!offers.length) return;
      if (event.key === "ArrowDown") choose(chosen + 1);
      else choose(chosen < 0 ? -1 : chosen - 1);
    } else if ((event.key === "Enter" || event.key === "Tab") && chosen >= 0) take(chosen);
    else if (event.key === "Escape" && !list.hidden) show([]);
    else return;
    event.preventDefault();
  });
}
