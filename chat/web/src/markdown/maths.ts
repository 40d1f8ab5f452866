/** Formulas, set by KaTeX; loaded with its styles and fonts when a message has one. */
import katex from "katex";
import "katex/dist/katex.min.css";

const LONGEST = 5_000;

/**
 * Set the TeX that an element holds. What cannot be set stays as it was written.
 *
 * KaTeX builds elements and sets their styles by script, which the page's policy allows; untrusted, it makes neither
 * links nor pictures, classes or ids of the author's. Sizes and expansions are bounded.
 */
export function setFormula(box: HTMLElement): void {
  const source = box.textContent ?? "";
  if (source.length > LONGEST) return;
  const set = document.createElement("span");
  try {
    katex.render(source, set, {
      displayMode: box.classList.contains("md-math-block"),
      throwOnError: true,
      trust: false,
      strict: "ignore",
      maxSize: 20,
      maxExpand: 200,
    });
  } catch {
    return;
  }
  box.replaceChildren(...set.childNodes);
  box.dataset.source = source;
  box.style.minHeight = "";
}
