// @vitest-environment jsdom
import { beforeEach, expect, it } from "vitest";
import { forgetPeople } from "../../src/pages/forgetting";
import { startKeepingTyped } from "../../src/pages/keeping-typed";

const ANN = "0197d3a0-0000-7000-8000-000000000001";
const BEN = "0197d3a0-0000-7000-8000-000000000002";
const FORM = `<form data-keeps-typed>
  <input type="hidden" name="csrfmiddlewaretoken" value="new">
  <input name="name" value="stored"><textarea name="text">stored</textarea>
  <input type="checkbox" name="on"><input type="radio" name="colour" value="a" checked><input type="radio" name="colour" value="b">
  <select name="model"><option>one</option><option>two</option></select>
  <input type="password" name="key"></form>`;

const form = () => document.forms[0] as HTMLFormElement;
const field = <E extends HTMLElement = HTMLInputElement>(name: string) =>
  form().elements.namedItem(name) as E;

function openPage(path: string): void {
  history.replaceState(null, "", path);
  document.body.innerHTML = FORM;
}

function sendChanged(): void {
  field("name").value = "typed";
  field<HTMLTextAreaElement>("text").value = "typed\ntoo";
  field("on").checked = true;
  form().querySelectorAll<HTMLInputElement>("[name=colour]")[1]?.click();
  field<HTMLSelectElement>("model").value = "two";
  field("key").value = "secret";
  const sent = new Event("submit", { bubbles: true });
  form().dispatchEvent(sent);
}

beforeEach(() => {
  sessionStorage.clear();
  openPage("/w/demo/buds/one/");
});

it("REL-1481: what was sent is put back where its page is asked to, once", () => {
  expect(startKeepingTyped(ANN)).toBe(false);
  sendChanged();
  expect(JSON.stringify({ ...sessionStorage })).not.toMatch(/secret|csrf/);
  openPage("/w/demo/buds/one/#unsent");
  expect(startKeepingTyped(ANN)).toBe(true);
  expect(location.hash).toBe("");
  expect(field("name").value).toBe("typed");
  expect(field<HTMLTextAreaElement>("text").value).toBe("typed\ntoo");
  expect(field("on").checked).toBe(true);
  expect(new FormData(form()).get("colour")).toBe("b");
  expect(field<HTMLSelectElement>("model").value).toBe("two");
  expect(field("csrfmiddlewaretoken").value).toBe("new");
  expect(form().dataset.putBack).toBe("");
  openPage("/w/demo/buds/one/#unsent");
  expect(startKeepingTyped(ANN)).toBe(false);
  expect(field("name").value).toBe("stored");
});

it("REL-1481: it is not put back on another page, on one opened as ever, or for another person", () => {
  startKeepingTyped(ANN);
  sendChanged();
  openPage("/w/demo/buds/two/#unsent");
  expect(startKeepingTyped(ANN)).toBe(false);
  openPage("/w/demo/buds/one/#unsent");
  expect(startKeepingTyped(BEN)).toBe(false);
  expect(field("name").value).toBe("stored");
  openPage("/w/demo/buds/one/");
  expect(startKeepingTyped(ANN)).toBe(false);
  openPage("/w/demo/buds/one/#unsent");
  expect(startKeepingTyped(ANN)).toBe(false);
});

it("REL-1724: a form that was unfolded is so again", () => {
  startKeepingTyped(ANN);
  sendChanged();
  history.replaceState(null, "", "/w/demo/buds/one/#unsent");
  document.body.innerHTML = `<details><summary>Add</summary>${FORM}</details>`;
  expect(startKeepingTyped(ANN)).toBe(true);
  expect(document.querySelector("details")?.open).toBe(true);
});

it("REL-1481, REL-576: it goes with its person", () => {
  startKeepingTyped(ANN);
  sendChanged();
  forgetPeople(sessionStorage, ANN);
  expect(sessionStorage.length).toBe(1);
  forgetPeople(sessionStorage);
  expect(sessionStorage.length).toBe(0);
});

it("a choice that is gone by now stays as the page has it", () => {
  startKeepingTyped(ANN);
  sendChanged();
  openPage("/w/demo/buds/one/#unsent");
  field<HTMLSelectElement>("model").options[1]?.remove();
  startKeepingTyped(ANN);
  expect(field<HTMLSelectElement>("model").value).toBe("one");
});
