/**
 * What somebody typed into a form comes back where sending it led elsewhere: the session had ended, or the server refused
 * it on a page of its own. Those lead back to the form's page with `#unsent`. Forms ask for it with `data-keeps-typed`;
 * none that takes secrets does.
 */
const KEY = "trellis.typed";
const UNSENT = "#unsent";
const FORMS = "form[data-keeps-typed]";
const NEVER = new Set(["password", "file", "submit", "button", "reset"]);

type Field = HTMLInputElement | HTMLSelectElement | HTMLTextAreaElement;

interface Typed {
  path: string;
  /** Which of the page's forms. */
  form: number;
  values: [name: string, value: string, isChecked: boolean][];
}

const keyOf = (person: string): string => `${KEY}.${person}`;
const formsHere = (): HTMLFormElement[] => [...document.querySelectorAll<HTMLFormElement>(FORMS)];

function fieldsOf(form: HTMLFormElement): Field[] {
  return [...form.elements].filter((one): one is Field => {
    const isField = one.matches("input, select:not([multiple]), textarea");
    const { name, type } = one as Field;
    return isField && name !== "" && name !== "csrfmiddlewaretoken" && !NEVER.has(type);
  });
}

const isCheckedIn = (field: Field): boolean => field instanceof HTMLInputElement && field.checked;

/** Keep what is sent, in this tab alone. */
function keep(form: HTMLFormElement, person: string): void {
  const values = fieldsOf(form).map((one): Typed["values"][number] => [
    one.name,
    one.value,
    isCheckedIn(one),
  ]);
  const typed: Typed = { path: location.pathname, form: formsHere().indexOf(form), values };
  try {
    sessionStorage.setItem(keyOf(person), JSON.stringify(typed));
  } catch {
    // Forbidden, or too long.
  }
}

/** What was kept of a form on this page; it is kept no longer. */
function take(person: string): Typed | null {
  try {
    const typed = JSON.parse(sessionStorage.getItem(keyOf(person)) ?? "null") as Typed | null;
    if (typed?.path !== location.pathname) return null;
    sessionStorage.removeItem(keyOf(person));
    return typed;
  } catch {
    return null;
  }
}

function putBack({ form: at, values }: Typed): HTMLFormElement | null {
  const form = formsHere()[at];
  if (!form) return null;
  const left = new Map<string, Typed["values"]>();
  for (const one of values) left.set(one[0], [...(left.get(one[0]) ?? []), one]);
  for (const field of fieldsOf(form)) {
    const sort = field.type === "radio" || field.type === "checkbox";
    const of = left.get(field.name) ?? [];
    // A list may have other choices by now.
    const found = sort ? of.find(([, value]) => value === field.value) : of.shift();
    if (!found) continue;
    if (sort) (field as HTMLInputElement).checked = found[2];
    else if (
      !(field instanceof HTMLSelectElement) ||
      [...field.options].some((one) => one.value === found[1])
    )
      field.value = found[1];
  }
  const folded = form.closest("details");
  if (folded) folded.open = true;
  form.dataset.putBack = "";
  return form;
}

/**
 * Keep what these forms send, and put it back where the page was asked to. Comes before whatever reads the fields.
 *
 * @returns whether something was put back.
 */
export function startKeepingTyped(person: string): boolean {
  document.addEventListener("submit", (event) => {
    const form = event.target;
    if (form instanceof HTMLFormElement && form.matches(FORMS)) keep(form, person);
  });
  if (formsHere().length === 0) return false;
  // A page that is opened as ever has no use for it.
  const typed = take(person);
  if (location.hash !== UNSENT) return false;
  history.replaceState(history.state, "", location.pathname + location.search);
  return typed !== null && putBack(typed) !== null;
}
