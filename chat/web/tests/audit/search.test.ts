import { describe, expect, it, vi } from "vitest";
import { type Known, offersFor, startSearch, startSearchOfPage, termAt } from "../../src/audit/search";

const KNOWN: Known = {
  keys: [
    ["tool", "Name of the tool"],
    ["token", "API token"],
    ["bud", "Bud"],
  ],
  values: { tool: ["mail.send", "mail.read", "echo"], bud: ["Help desk", 'The "odd" one'] },
};
const texts = (text: string, caret = text.length) => offersFor(text, caret, KNOWN).map((one) => one.text);

describe("completion of filters", () => {
  it("finds the term at the caret, whatever is quoted", () => {
    expect(termAt("tool:a bud:b", 12)).toEqual({ from: 7, to: 12 });
    expect(termAt("tool:a bud:b", 3)).toEqual({ from: 0, to: 6 });
    expect(termAt('bud:"Help de', 12)).toEqual({ from: 0, to: 12 });
    expect(termAt('bud:"Help desk" x', 9)).toEqual({ from: 0, to: 15 });
  });

  it("offers names, then values, those that begin so first", () => {
    expect(texts("")).toEqual(["tool:", "token:", "bud:"]);
    expect(texts("to")).toEqual(["tool:", "token:"]);
    expect(texts("tool:ma")).toEqual(["mail.send", "mail.read"]);
    expect(texts("tool:SEND")).toEqual(["mail.send"]);
    expect(texts('"to')).toEqual([]);
    expect(texts("tool:echo")).toEqual([]);
    expect(texts("nothing:x")).toEqual([]);
  });

  it("replaces the term at the caret and nothing else", () => {
    const [offer] = offersFor("tool:ma bud:x", 7, KNOWN);
    expect(offer).toMatchObject({ value: "tool:mail.send bud:x", caret: 14 });
    expect(offersFor("x bud:he", 8, KNOWN)[0]?.value).toBe('x bud:"Help desk" ');
    expect(offersFor("bud:odd", 7, KNOWN)[0]?.value).toBe('bud:"The \\"odd\\" one" ');
  });

  it("REL-2693: has the address name only what was chosen", () => {
    document.body.innerHTML =
      '<form><input data-filter-text name="q" value="words"><input name="tool" value=""></form>';
    startSearchOfPage();
    const form = document.querySelector("form") as HTMLFormElement;
    const body = new FormData(form);
    // As browsers do when they collect a form; the tests' document does not.
    form.dispatchEvent(Object.assign(new Event("formdata"), { formData: body }));
    expect([...body]).toEqual([["q", "words"]]);
  });

  it("is worked by keys and says where it is", () => {
    Element.prototype.scrollIntoView = vi.fn();
    document.body.innerHTML = '<input id="q">';
    const input = document.querySelector("input") as HTMLInputElement;
    startSearch(input, KNOWN);
    const press = (key: string) => {
      const event = new KeyboardEvent("keydown", { key, cancelable: true });
      input.dispatchEvent(event);
      return event.defaultPrevented;
    };
    input.value = "tool:ma";
    input.setSelectionRange(7, 7);
    input.dispatchEvent(new Event("input"));
    expect(input.getAttribute("aria-expanded")).toBe("true");
    expect(press("Enter")).toBe(false);
    press("ArrowDown");
    press("ArrowDown");
    expect(input.getAttribute("aria-activedescendant")).toBe("q-offers-1");
    expect(press("Enter")).toBe(true);
    expect(input.value).toBe("tool:mail.read ");
    expect(press("Escape")).toBe(true);
    expect(input.getAttribute("aria-expanded")).toBe("false");
  });
});

it("REL-2526: looks for nothing without a name on a page that has no field of filters", () => {
  document.body.innerHTML = "";
  const found = vi.spyOn(document, "getElementById");
  startSearchOfPage();
  expect(found).not.toHaveBeenCalledWith("");
});
