// @vitest-environment jsdom
import { beforeEach, expect, it, vi } from "vitest";
import { fits, startFinding } from "../../src/pages/finding";

const names = Array.from({ length: 300 }, (_, at) => `vendor/model-${at}`);
const options = names.map((name) => `<option value="${name}">${name}</option>`).join("");
const finder = () => document.querySelector<HTMLInputElement>(".finder input") as HTMLInputElement;

function type(text: string): void {
  finder().value = text;
  finder().dispatchEvent(new Event("input", { bubbles: true }));
}

const press = (key: string) => {
  const event = new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true });
  finder().dispatchEvent(event);
  return event;
};

beforeEach(() => {
  document.body.innerHTML = "";
});

it("each word that is typed has to be there", () => {
  expect(fits("OpenAI gpt-4.1-mini", "mini openai")).toBe(true);
  expect(fits("OpenAI gpt-4.1-mini", "mini claude")).toBe(false);
  expect(fits("Größe", "grosse")).toBe(false);
  expect(fits("anything", "")).toBe(true);
});

it("REL-1484: the options of a long select are narrowed by typing, and the choice stays", () => {
  document.body.innerHTML = `<form><select data-findable="Find a model"><optgroup label="One"><option value="" selected>Default</option></optgroup><optgroup label="Two">${options}</optgroup></select></form>`;
  const touched = vi.fn();
  document.forms[0]?.addEventListener("input", touched);
  startFinding();
  const select = document.querySelector("select") as HTMLSelectElement;
  expect(finder().getAttribute("aria-label")).toBe("Find a model");
  type("two 29");
  expect([...select.options].map((one) => one.value)).toEqual([
    "",
    ...names.filter((one) => one.includes("29")),
  ]);
  expect(document.querySelector("[role=status]")?.textContent).toBe("13 of 301. Enter chooses the first.");
  expect(select.value).toBe("");
  expect(touched).not.toHaveBeenCalled();
  expect(press("Enter").defaultPrevented).toBe(true);
  expect(select.value).toBe("vendor/model-29");
  expect(touched).toHaveBeenCalled();
  type("nothing like it");
  expect([...select.options].map((one) => one.value)).toEqual(["vendor/model-29"]);
  expect(document.querySelector("[role=status]")?.textContent).toBe("Nothing fits.");
  type("");
  expect(select.options).toHaveLength(301);
  expect([...select.querySelectorAll("optgroup")].map((one) => one.label)).toEqual(["One", "Two"]);
  expect(select.value).toBe("vendor/model-29");
});

it("REL-1484: the rows of a long table are narrowed, and what is ticked stays", () => {
  const rows = names
    .map((name) => `<tr><th><input type="checkbox" name="models" value="${name}">${name}</th><td>x</td></tr>`)
    .join("");
  document.body.innerHTML = `<form><div class="table-scroll"><table data-findable="Find a model"><tbody>${rows}</tbody></table></div></form>`;
  startFinding();
  document.querySelector<HTMLInputElement>("[value='vendor/model-7']")?.click();
  type("model-299");
  expect([...document.querySelectorAll<HTMLTableRowElement>("tr")].filter((one) => !one.hidden)).toHaveLength(
    1,
  );
  expect(new FormData(document.forms[0]).getAll("models")).toEqual(["vendor/model-7"]);
  expect(press("Enter").defaultPrevented).toBe(true);
});

it("a short list needs no field", () => {
  document.body.innerHTML = `<select data-findable="Find">${options.slice(0, 200)}</select>`;
  startFinding();
  expect(finder()).toBeNull();
});
