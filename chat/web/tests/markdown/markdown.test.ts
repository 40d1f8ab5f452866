import { describe, expect, it } from "vitest";
import { safeHref } from "../../src/markdown/links";
import { renderText, sanitize } from "../../src/markdown/render";
import { linesOf } from "../../src/markdown/room";
import { MarkdownStream } from "../../src/markdown/stream";

function dom(text: string): HTMLElement {
  const root = document.createElement("div");
  root.innerHTML = renderText(text);
  return root;
}

const ATTACKS = [
  "<script>alert(1)</script>",
  "<img src=x onerror=alert(1)>",
  "<svg onload=alert(1)>",
  "<details open ontoggle=alert(1)>x</details>",
  "<iframe src=https://evil.example></iframe>",
  '<a href="javascript:alert(1)">x</a>',
  "[x](javascript:alert(1))",
  "[x](java\tscript:alert(1))",
  "[x](&#106;avascript:alert(1))",
  "[x](data:text/html;base64,PHNjcmlwdD4=)",
  "[x](vbscript:msgbox)",
  "[x](/accounts/logout/)",
  "[x](//evil.example/)",
  "![x](https://evil.example/p.png)",
  "![x](javascript:alert(1))",
  "![x][r]\n\n[r]: https://evil.example/p.png",
  '<img srcset="https://evil.example/p.png 2x">',
  '<link rel=stylesheet href="https://evil.example/s.css">',
  '<div style="background:url(https://evil.example/)">x</div>',
  "<style>@import 'https://evil.example';</style>",
  '<audio src="https://evil.example/a.mp3"></audio>',
  '<form action="https://evil.example"><input name=p></form>',
  '```"><img src=x onerror=alert(1)>\nx\n```',
  "| a |\n|---|\n| <img src=x onerror=alert(1)> |",
  '<section class="approval"><button>Approve</button></section>',
  "<math><mtext><table><mglyph><style><img src=x onerror=alert(1)>",
];

describe("render", () => {
  it.each(ATTACKS)("SEC-81, SEC-82, SEC-83: %s is inert", (attack) => {
    const root = dom(attack);
    expect(
      root.querySelector("script, img, svg, iframe, link, style, audio, form, input, button, details"),
    ).toBeNull();
    for (const element of root.querySelectorAll("*")) {
      for (const { name, value } of element.attributes) {
        expect(["href", "target", "rel", "class", "align", "start", "tabindex"]).toContain(name);
        if (name === "href") expect(value).toMatch(/^(https?:\/\/|mailto:)/);
      }
    }
  });

  it("SEC-81: the sanitizer stands on its own, whatever a renderer lets through", () => {
    const html =
      ATTACKS.join("") + '<p class="approval" data-x="1" id="app" style="color:red">x</p><h3>T</h3>';
    const root = document.createElement("div");
    root.innerHTML = sanitize(html);
    expect(
      root.querySelector("script, img, svg, iframe, link, style, audio, form, input, button, section"),
    ).toBeNull();
    expect(root.querySelector("[id], [style], [onerror], [onload], [data-x], .approval")).toBeNull();
  });

  it("SEC-87: HTML that imitates a card is shown as the text it is", () => {
    const root = dom('<section class="approval">Allow delete?</section>');
    expect(root.querySelector(".approval")).toBeNull();
    expect(root.textContent).toContain('<section class="approval">');
  });

  it("SEC-83: an image is a link that names its host", () => {
    const link = dom("![chart](https://pics.example/a.png)").querySelector("a");
    expect(link?.textContent).toBe("Image “chart” on pics.example");
    expect(link?.getAttribute("rel")).toContain("noopener");
  });

  it.each([
    ["[Call us](tel:+41441234567)", "Call us (tel:+41441234567)"],
    ["[the report](sandbox:/mnt/data/report.pdf)", "the report (sandbox:/mnt/data/report.pdf)"],
    ["[ftp://a.example/x](ftp://a.example/x)", "ftp://a.example/x"],
    ["[run](javascript:alert(1))", "run"],
    ["[see](data:text/html;base64,PHNjcmlwdD4=)", "see"],
    ["[x](tel:1\u202e)", "x (tel:1)"],
    [`[long](file:///${"a".repeat(300)})`, `long (file:///${"a".repeat(192)}…)`],
    ['[odd](tel:"<img>)', 'odd (tel:"<img>)'],
  ])("REL-1353: %s keeps where it leads", (text, shown) => {
    const root = dom(text);
    expect(root.querySelector("a, img")).toBeNull();
    expect(decodeURI(root.textContent?.trim() ?? "")).toBe(shown);
  });

  it("opens links in a new tab without a way back", () => {
    const link = dom("[docs](https://example.org/a?b=1&c=2)").querySelector("a");
    expect(link?.getAttribute("href")).toBe("https://example.org/a?b=1&c=2");
    expect(link?.getAttribute("target")).toBe("_blank");
    expect(link?.getAttribute("rel")).toBe("noopener noreferrer nofollow");
  });

  it("keeps what people write: tables, lists, tasks, code, breaks", () => {
    const root = dom(
      "# T\n\n| a | b |\n|:-:|--:|\n| 1<br>2 | `x` |\n\n- [x] done\n\n```py\nprint('<b>')\n```",
    );
    expect(root.querySelector("h3")?.textContent).toBe("T");
    expect(root.querySelector("td br")).not.toBeNull();
    expect(root.querySelector("td")?.getAttribute("align")).toBe("center");
    expect(root.querySelector("li")?.textContent).toContain("☑ done");
    expect(root.querySelector("code.language-py")?.textContent).toBe("print('<b>')\n");
  });
});

it("REL-1779: cells with sentences keep room of their own, and short ones do not", () => {
  const root = dom(
    "| Name | What it does |\n|---|---|\n| clock | Tells the time of any city in the world. |",
  );
  const roomy = [...root.querySelectorAll("th, td")].map((cell) => cell.classList.contains("md-words"));
  expect(roomy).toEqual([false, false, false, true]);
});

describe("safeHref", () => {
  it.each([
    ["https://a.example/x", "https://a.example/x"],
    ["HTTP://A.example", "http://a.example/"],
    ["mailto:a@b.example", "mailto:a@b.example"],
    [" java\nscript:alert(1)", null],
    ["\u0001javascript:alert(1)", null],
    ["data:text/html,x", null],
    ["/relative", null],
    ["https://", null],
  ])("%j", (href, expected) => expect(safeHref(href)).toBe(expected));
});

describe("MarkdownStream", () => {
  it("REL-1464: has no heading without words", () => {
    expect(renderText("##\n\nText")).toBe("<p>Text</p>\n");
  });

  it("REL-1464: has no heading skip a level, whichever the text begins with", () => {
    const root = document.createElement("div");
    new MarkdownStream(root, () => undefined).update("## A\n\n#### B\n\n# C\n\n## D\n\nText", true);
    const levels = [...root.querySelectorAll("h3, h4, h5, h6")].map(
      (one) => one.getAttribute("aria-level") ?? one.tagName,
    );
    expect(levels).toEqual(["3", "4", "H3", "H4"]);
  });

  const TEXT = [
    "# Title with *em* and **strong",
    "** words",
    "",
    "A [link][r], `code` and more.",
    "",
    "1. one",
    "2. two",
    "",
    "   ```js",
    "   const a = 1;",
    "   ```",
    "",
    "| a | b |",
    "|---|---|",
    "| 1 | 2 |",
    "",
    "> quote",
    "> goes on",
    "",
    "```python",
    "def f():",
    "    return '<b>'",
    "```",
    "",
    "last line",
    "",
    "[r]: https://example.org",
  ].join("\n");

  it.each([1, 2, 3, 7, 16, 64, 1000])("ends as one full render, in pieces of %i", (size) => {
    const grown = document.createElement("div");
    const whole = document.createElement("div");
    const settled: Element[] = [];
    const stream = new MarkdownStream(grown, (block) => settled.push(block));
    for (let end = size; end < TEXT.length; end += size) stream.update(TEXT.slice(0, end), false);
    stream.update(TEXT, true);
    new MarkdownStream(whole, () => undefined).update(TEXT, true);
    const html = (root: HTMLElement) => [...root.children].map((child) => child.innerHTML);
    expect(html(grown)).toEqual(html(whole));
    expect(new Set(settled).size).toBe(grown.children.length);
  });

  it("REL-1248: lets each block run as its first letters do", () => {
    const root = document.createElement("div");
    new MarkdownStream(root, () => undefined).update("مرحبا بكم.\n\n- واحد\n\nHello.", true);
    expect([...root.children].map((block) => (block as HTMLElement).dir)).toEqual(["auto", "auto", "auto"]);
  });

  it("REL-1456: lets code in a paragraph not decide on its direction", () => {
    expect(dom("`git` مرحبا").querySelector("code")?.dir).toBe("ltr");
    expect(dom('`a < b & "c"`').querySelector("code")?.textContent).toBe('a < b & "c"');
  });

  it("REL-1464: tells headings without skipping a level, however an answer begins", () => {
    const root = document.createElement("div");
    const stream = new MarkdownStream(root, () => undefined);
    const levels = () =>
      [...root.querySelectorAll("h3, h4, h5, h6")].map(
        (heading) => `${heading.textContent} ${heading.ariaLevel ?? heading.tagName}`,
      );
    stream.update("## A\n\n#### B\n\n### C", false);
    expect(levels()).toEqual(["A 3", "B 4", "C 4"]);
    stream.update("## A\n\n#### B\n\n### C\n\n# D\n\n## E\n\nend", true);
    expect(levels()).toEqual(["A 3", "B 4", "C 4", "D H3", "E H4"]);
  });

  it("starts over when the text is another one", () => {
    const root = document.createElement("div");
    const stream = new MarkdownStream(root, () => undefined);
    stream.update("first\n\nsecond\n\nthird\n\nfourth", false);
    stream.update("new", true);
    expect(root.textContent?.trim()).toBe("new");
  });
});

it("keeps about as much room for a formula as it will take", () => {
  expect(linesOf("x = 1")).toBeLessThan(linesOf("\\frac{1}{2}"));
  expect(linesOf("\\frac{1}{2}")).toBeLessThan(linesOf("a \\\\ b \\\\ c"));
});
