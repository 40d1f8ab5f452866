import { afterEach, expect, it } from "vitest";
import { startTypedTimes } from "../../src/pages/typed-times";

afterEach(() => {
  delete document.documentElement.dataset.formats;
  document.body.replaceChildren();
});

it("REL-1421: a time is typed by the reader's clock, and sent in UTC", () => {
  document.documentElement.dataset.formats = JSON.stringify({ time_zone: "Asia/Tokyo" });
  document.body.innerHTML = `<form>
    <label for="since">From (UTC)</label>
    <input id="since" name="since" type="datetime-local" step="1" value="2026-11-26T14:05:09" data-utc="From">
    <label for="until">To (UTC)</label>
    <input id="until" name="until" type="datetime-local" value="" data-utc="To">
  </form>`;
  startTypedTimes(document);
  const field = document.querySelector<HTMLInputElement>("#since");
  const form = document.querySelector("form");
  if (!field || !form) throw new Error("no form");
  expect(field.value).toMatch(/^2026-11-26T23:05:09/);
  expect(document.querySelector("label")?.textContent).toBe("From");
  field.value = "2026-11-27T08:00:00";
  const body = new FormData(form);
  // As browsers do when they collect a form; the tests' document does not.
  form.dispatchEvent(Object.assign(new Event("formdata"), { formData: body }));
  expect(body.get("since")).toBe("2026-11-26T23:00:00.000Z");
  expect(body.get("until")).toBe("");
});
