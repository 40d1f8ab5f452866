import { beforeEach, describe, expect, it, vi } from "vitest";
import { startAtAnswer } from "../../src/pages/arriving";

const scrolled = vi.fn();

beforeEach(() => {
  scrolled.mockClear();
  Element.prototype.scrollIntoView = scrolled;
});

const begin = (form: string): Element | null => {
  document.body.innerHTML = `<main><form method="get"><input aria-invalid="true"></form><form method="post">${form}</form></main>`;
  (document.activeElement as HTMLElement | null)?.blur();
  startAtAnswer();
  return document.activeElement;
};

describe("REL-920: a page that answers a form begins at the answer", () => {
  it("at the first field that is refused, also in what was folded", () => {
    const field = begin(
      '<input id="a"><details><input id="b" aria-invalid="true"></details><input id="c" aria-invalid="true">',
    );
    expect(field?.id).toBe("b");
    expect(field?.closest("details")?.open).toBe(true);
    expect(scrolled).toHaveBeenCalledTimes(1);
  });

  it("at the fields of a group that is refused as a whole", () => {
    const field = begin(
      '<fieldset class="field"><input id="a"><p class="field-error">Choose one.</p></fieldset>',
    );
    expect(field?.id).toBe("a");
  });

  it("at what is wrong with all of it, or at what was asked for", () => {
    expect(begin('<input id="a"><div role="alert">Nothing was saved.</div>')?.textContent).toContain(
      "Nothing",
    );
    expect(begin('<input id="a"><div role="alert"></div><p data-answer>5 entries</p>')?.textContent).toBe(
      "5 entries",
    );
  });

  it("and nowhere else", () => {
    expect(begin('<input id="a">')).toBe(document.body);
    expect(scrolled).not.toHaveBeenCalled();
  });
});
