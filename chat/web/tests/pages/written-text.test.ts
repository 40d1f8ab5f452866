import { beforeEach, describe, expect, it } from "vitest";
import { startWrittenText } from "../../src/pages/written-text";

function panel(text: string): HTMLElement {
  document.body.innerHTML =
    '<section data-said><div class="panel-head"><h2>Answer</h2></div><div class="said" data-source></div></section>';
  const box = document.querySelector<HTMLElement>("[data-said]") as HTMLElement;
  (box.querySelector("[data-source]") as HTMLElement).textContent = text;
  startWrittenText(box);
  return box;
}
const rendered = (box: HTMLElement) => box.querySelector(".md") as HTMLElement;
const source = (box: HTMLElement) => box.querySelector("[data-source]") as HTMLElement;

beforeEach(() => {
  document.body.innerHTML = "";
});

// REL-835
describe("a text of a turn", () => {
  it("is rendered, and a press shows it as it was written", () => {
    const box = panel("**Bold** and\n\n- one\n- two");
    expect(rendered(box).querySelector("strong")?.textContent).toBe("Bold");
    expect(rendered(box).querySelectorAll("li")).toHaveLength(2);
    expect(source(box).hidden).toBe(true);
    const button = box.querySelector("button") as HTMLButtonElement;
    button.click();
    expect([source(box).hidden, rendered(box).hidden]).toEqual([false, true]);
    expect(button.getAttribute("aria-pressed")).toBe("true");
    expect(source(box).textContent).toBe("**Bold** and\n\n- one\n- two");
  });

  it("loads no picture, runs nothing, and says where links lead", () => {
    const box = panel(
      "![x](https://evil.example/p.png)\n\n<script>alert(1)</script>\n\n[Our bank](https://evil.example/in) https://plain.example/",
    );
    expect(box.querySelectorAll("img, script, iframe")).toHaveLength(0);
    expect(rendered(box).textContent).toContain("Our bank (https://evil.example/in)");
    expect(rendered(box).textContent?.match(/plain\.example/g)).toHaveLength(1);
  });

  it("shows a diagram as code", () => {
    const box = panel("```mermaid\ngraph TD; A-->B\n```");
    expect(rendered(box).querySelector("code")?.textContent).toContain("graph TD");
    expect(rendered(box).querySelector(".md-diagram")).toBeNull();
  });

  it("is folded where it is long, until somebody wants all of it", () => {
    expect(panel("short").querySelector(".is-folded")).toBeNull();
    const box = panel("word ".repeat(1_000));
    expect(rendered(box).classList).toContain("is-folded");
    const more = [...box.querySelectorAll("button")].at(-1) as HTMLButtonElement;
    more.click();
    expect(box.querySelector(".is-folded")).toBeNull();
    expect(more.getAttribute("aria-expanded")).toBe("true");
  });
});
