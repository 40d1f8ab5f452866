/**
 * Fields for a date and time that the server reads and writes in UTC. People type them by the clock that the rest of the
 * page goes by. The words of such a field's label are then its `data-utc`.
 */
import { momentOf, typed } from "../formats";

export function startTypedTimes(root: ParentNode): void {
  const forms = new Set<HTMLFormElement>();
  for (const field of root.querySelectorAll<HTMLInputElement>("input[data-utc]")) {
    // What the page says: a browser that goes back may have put the typed time there already.
    const given = field.defaultValue;
    const exactness = field.step === "1" ? "second" : "minute";
    field.value = Number.isNaN(Date.parse(`${given}Z`)) ? "" : typed(`${given}Z`, exactness);
    const label = field.labels?.[0];
    if (label) label.textContent = field.dataset.utc ?? "";
    if (field.form) forms.add(field.form);
  }
  for (const form of forms) form.addEventListener("formdata", (event) => putInUtc(form, event.formData));
}

function putInUtc(form: HTMLFormElement, body: FormData): void {
  for (const field of form.querySelectorAll<HTMLInputElement>("input[data-utc]")) {
    if (field.value && body.has(field.name)) body.set(field.name, momentOf(field.value).toISOString());
  }
}
