/** Where a page begins that answers a form: at its first fault, or at what was asked for; both may be far below the top. */

const FAULTS = '[aria-invalid="true"], .field-error, .errorlist, [role="alert"]';
const FIELDS = "input:not([type=hidden]),select,textarea";

export function startAtAnswer(root: ParentNode = document): void {
  const found = [...root.querySelectorAll<HTMLElement>("main form[method=post]")]
    .flatMap((form) => [...form.querySelectorAll<HTMLElement>(`${FAULTS}, [data-answer]`)])
    .find((one) => one.textContent?.trim() || one.matches(FIELDS));
  if (!found) return;
  for (let box = found.closest("details"); box; box = box.parentElement?.closest("details") ?? null)
    box.open = true;
  const field = found.matches(FIELDS)
    ? found
    : found.matches("[data-answer], [role=alert]")
      ? null
      : found.closest(".field")?.querySelector<HTMLElement>(FIELDS);
  const begin = field ?? found;
  if (!field) found.tabIndex = -1;
  begin.focus({ preventScroll: true });
  begin.scrollIntoView({ block: "center" });
}
