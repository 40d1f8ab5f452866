/** What answers hold beside words: maths, footnotes, tables, code; links that say where they lead. */
import { beforeAll, describe, expect, it } from "vitest";
import { renderText } from "../../src/markdown/render";
import { MarkdownStream } from "../../src/markdown/stream";
import { notesIn } from "../../src/markdown/syntax";
import { openPage } from "../page";

type Code = typeof import("../../src/markdown/code");
type Table = typeof import("../../src/markdown/table");
type Finish = typeof import("../../src/markdown/finish");
type Leaving = typeof import("../../src/app/leaving");

let code: Code;
let table: Table;
let finish: Finish;
let leaving: Leaving;

beforeAll(async () => {
  openPage();
  Element.prototype.scrollIntoView = () => {};
  code = await import("../../src/markdown/code");
  table = await import("../../src/markdown/table");
  finish = await import("../../src/markdown/finish");
  leaving = await import("../../src/app/leaving");
});

function dom(text: string): HTMLElement {
  const root = document.createElement("div");
  root.className = "md";
  root.innerHTML = renderText(text, notesIn(text));
  document.body.append(root);
  return root;
}

describe("maths", () => {
  it.each([
    ["an $a^2 + b^2$ end", ["a^2 + b^2"]],
    ["\\(x_1\\) and \\(x_2\\)", ["x_1", "x_2"]],
    ["$$\n\\int x\n$$", ["\\int x"]],
    ["\\[ y \\]", ["y"]],
    ["so $$z$$ it is", ["z"]],
    ["```math\nq\n```", ["q"]],
    ["it costs $5 and $10", []],
    ["from $5-$10 a piece", []],
    ["`$a$` is code", []],
    ["a lone $ sign", []],
    ["$ spaced $", []],
  ])("REL-420: %j holds the formulas %j", (text, formulas) => {
    const found = [...dom(text).querySelectorAll(".md-math, .md-math-block")];
    expect(found.map((one) => one.textContent)).toEqual(formulas);
  });

  it("SEC-345: a formula that tries to be more than one makes no link, picture, script, class or address", async () => {
    const { setFormula } = await import("../../src/markdown/maths");
    for (const tex of [
      "\\href{javascript:alert(1)}{x}",
      "\\url{https://evil.example}",
      "\\includegraphics{https://evil.example/p.png}",
      "\\htmlClass{approval}{x}",
      "\\htmlId{app}{x}",
      "\\htmlStyle{position:fixed}{x}",
      "\\htmlData{x=1}{x}",
      "<img src=x onerror=alert(1)>",
      "\\def\\a{\\a\\a}\\a",
      "\\unknown",
    ]) {
      const box = document.createElement("span");
      box.className = "md-math";
      box.textContent = tex;
      setFormula(box);
      expect(
        box.querySelector("a, img, script, iframe, .approval, [id], [data-x], [onerror]"),
        tex,
      ).toBeNull();
      expect(box.querySelector('[style*="fixed"]'), tex).toBeNull();
    }
  });

  it("REL-420: a formula is set, and one that cannot be stays as written", async () => {
    const { setFormula } = await import("../../src/markdown/maths");
    const [good, bad] = ["x^2", "\\frac{1"].map((tex) => {
      const box = document.createElement("div");
      box.className = "md-math-block";
      box.textContent = tex;
      setFormula(box);
      return box;
    });
    expect(good?.querySelector(".katex math")).not.toBeNull();
    expect(bad?.innerHTML).toBe("\\frac{1");
  });
});

describe("footnotes", () => {
  it("REL-420: a mark leads to its note and back; a mark without a note is words", () => {
    const root = dom("Said.[^1] Not [^a-z] this.\n\n[^1]: Because.\n  And more.");
    finish.finishBlock(root);
    const [mark, note] = root.querySelectorAll<HTMLButtonElement>(".md-note-mark button");
    expect(root.textContent).toContain("Not [^a-z] this.");
    expect(root.querySelector(".md-note-mark + div")?.textContent).toContain("And more.");
    mark?.click();
    expect(document.activeElement).toBe(note);
    note?.click();
    expect(document.activeElement).toBe(mark);
  });

  it("REL-420: notes that come after their marks are found at the end of a stream", () => {
    const root = document.createElement("div");
    const stream = new MarkdownStream(root, () => undefined);
    const text = "One.[^n]\n\ntwo\n\nthree\n\nfour\n\n[^n]: The note.";
    for (let end = 5; end < text.length; end += 5) stream.update(text.slice(0, end), false);
    stream.update(text, true);
    expect(root.querySelectorAll(".md-note-mark")).toHaveLength(2);
  });
});

describe("tables", () => {
  const TABLE = "| City | People |\n|---|--:|\n| Ulm | 126,000 |\n| Bonn | 1,336,000 |\n| Aachen | 9 |";
  const column = (root: Element) =>
    [...root.querySelectorAll("tbody tr")].map((row) => row.children[0]?.textContent);

  it("REL-421: a click on a header sorts by numbers or words, a second one the other way, a third takes it back", () => {
    const root = dom(TABLE);
    finish.finishBlock(root);
    const [city, people] = root.querySelectorAll<HTMLButtonElement>("th .md-sort");
    people?.click();
    expect(column(root)).toEqual(["Aachen", "Ulm", "Bonn"]);
    expect(people?.parentElement?.getAttribute("aria-sort")).toBe("ascending");
    people?.click();
    expect(column(root)).toEqual(["Bonn", "Ulm", "Aachen"]);
    people?.click();
    expect(column(root)).toEqual(["Ulm", "Bonn", "Aachen"]);
    city?.click();
    expect(column(root)).toEqual(["Aachen", "Bonn", "Ulm"]);
    expect(people?.parentElement?.hasAttribute("aria-sort")).toBe(false);
  });

  it.each([
    ["12 %", 12],
    ["€1,200.50", 1200.5],
    ["−3", -3],
    ["1e3", 1000],
    ["1,2,3", null],
    ["n/a", null],
  ])("reads the number in %j", (text, expected) => expect(table.numberIn(text)).toBe(expected));

  it("SEC-345: a cell that a spreadsheet would take for a formula is copied as words", () => {
    expect(
      table.csvOf([
        ["a,b", 'say "x"'],
        ["=HYPERLINK(1)", "-5"],
        ["@x", "+1"],
      ]),
    ).toBe('"a,b","say ""x"""\r\n\'=HYPERLINK(1),-5\r\n\'@x,+1\r\n');
  });
});

describe("code", () => {
  it("REL-421: lines get elements of their own, with spans over several lines split, and the same text", () => {
    const box = document.createElement("code");
    box.innerHTML = 'a <span class="hljs-string">"one\ntwo\n</span>\n\nb\n';
    const text = box.textContent;
    const lines = code.splitLines(box);
    expect(box.textContent).toBe(text);
    expect(lines.map((line) => line.textContent)).toEqual(['a "one\n', "two\n", "\n", "\n", "b\n"]);
    expect(lines[1]?.querySelector(".hljs-string")?.textContent).toBe("two\n");
  });

  it("REL-421: a diff says what each line is, and is copied as it came", () => {
    const root = dom("```diff\n--- a\n+++ b\n@@ -1 +1 @@\n-old\n+new\n same\n```");
    finish.finishBlock(root);
    const lines = [...root.querySelectorAll<HTMLElement>(".md-line")];
    expect(lines.map((line) => line.dataset.change ?? "")).toEqual([
      "head",
      "head",
      "hunk",
      "removed",
      "added",
      "",
    ]);
    expect(lines[3]?.querySelector(".sr-only")?.textContent).toBe("removed: ");
  });

  it("REL-421: a switch wraps long lines, and the next block begins as this one was left", () => {
    const first = dom("```py\nx = 1\n```");
    finish.finishBlock(first);
    const button = first.querySelector<HTMLButtonElement>("[aria-pressed]");
    button?.click();
    expect(button?.getAttribute("aria-pressed")).toBe("true");
    const second = dom("```py\ny = 1\n```");
    finish.finishBlock(second);
    expect(second.querySelector<HTMLElement>(".md-code")?.dataset.wrap).toBe("");
    button?.click();
  });
});

describe("links", () => {
  it.each([
    ["https://example.org/x", "the docs", "example.org", false],
    ["https://example.org/x", "www.example.org", "example.org", false],
    ["https://google.com@evil.example/", "https://google.com/login", "evil.example", true],
    ["https://evil.example/", "bank.example", "evil.example", true],
    ["https://xn--bnk-0na.example/", "bänk", "xn--bnk-0na.example", false],
    ["https://evil.example:8443/", "see 1.2", "evil.example:8443", false],
    ["mailto:a@b.example?subject=x", "write", "a@b.example", false],
  ])("SEC-346: %j behind %j leads to %j", (href, words, host, isDisguised) => {
    expect(leaving.targetOf(href, words)).toMatchObject({ host, isDisguised });
  });
});
