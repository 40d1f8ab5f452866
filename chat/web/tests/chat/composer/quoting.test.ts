import { describe, expect, it } from "vitest";
import { passagesOf, withQuote } from "../../../src/chat/composer/quoting";

describe("a quote", () => {
  it("goes below what is written, line by line, with room for words about it", () => {
    expect(withQuote("", " one\n\ntwo ")).toBe("> one\n>\n> two\n\n");
    expect(withQuote("And this? ", "three")).toBe("And this?\n\n> three\n\n");
  });

  it("is shown as one, apart from the words about it", () => {
    const text = `${withQuote(withQuote("", "one\ntwo"), "three")}Why?`;
    expect(passagesOf("> one\n> two\n\nWhat?\n\n> three\n\nWhy?")).toEqual([
      { text: "one\ntwo", isQuote: true },
      { text: "What?", isQuote: false },
      { text: "three", isQuote: true },
      { text: "Why?", isQuote: false },
    ]);
    expect(passagesOf(text).map((one) => one.isQuote)).toEqual([true, true, false]);
  });

  it("leaves other words as they are", () => {
    const text = "  5 > 3\n\n  and so on\n";
    expect(passagesOf(text)).toEqual([{ text, isQuote: false }]);
  });
});
