/** What a finished block gets on top. Maths and diagrams are loaded when the first block needs them. */
import t from "../texts/reading";
import { fetchPart } from "../ui/parts";
import { copyButton, finishCode, languageOf, switchButton } from "./code";
import { linesOf } from "./room";
import { finishTable } from "./table";

export function finishBlock(block: HTMLElement): void {
  for (const box of block.querySelectorAll<HTMLElement>(".md-code")) {
    const code = box.querySelector("pre > code");
    if (code && languageOf(code) === "mermaid") finishDiagram(box, code.textContent ?? "");
    else finishCode(box);
  }
  block.querySelectorAll<HTMLElement>(".md-table").forEach(finishTable);
  block.querySelectorAll<HTMLElement>(".md-note-mark").forEach(finishNote);
  const formulas = block.querySelectorAll<HTMLElement>(".md-math, .md-math-block");
  if (formulas.length > 0) {
    keepRoom(block.querySelectorAll<HTMLElement>(".md-math-block:not([data-source])"));
    fetchPart(() => import("./maths"))
      .then(({ setFormula }) => formulas.forEach(setFormula))
      .catch(() => undefined); // TeX stays
  }
}

/** Until they are set, formulas take about as much room as then, so that nothing below them moves. */
function keepRoom(formulas: Iterable<HTMLElement>): void {
  for (const box of formulas) box.style.minHeight = `${linesOf(box.textContent ?? "")}lh`;
}

function finishDiagram(box: HTMLElement, source: string): void {
  const head = box.querySelector(".md-code-head");
  if (!head || head.querySelector("button")) return;
  const label = head.querySelector("span");
  const place = document.createElement("div");
  place.className = "md-diagram";
  place.textContent = t.drawing;
  const text = source.trim();
  const redraw = async () => {
    const { draw } = await fetchPart(() => import("./diagram"));
    const picture = await draw(text);
    if (!picture) throw new Error("undrawn");
    place.replaceChildren(picture);
  };
  const again = () => {
    if (place.isConnected)
      void redraw().catch(() => undefined); // the old one stays
    else removeEventListener("trellis:theme", again);
  };
  box.dataset.view = "drawing";
  place.tabIndex = 0;
  box.append(place);
  redraw()
    .then(() => {
      if (label) label.textContent = t.diagram;
      head.append(
        switchButton("code", t.showSource, false, (isOn) => {
          box.dataset.view = isOn ? "source" : "drawing";
        }),
        copyButton(() => source),
      );
      addEventListener("trellis:theme", again);
    })
    .catch(() => {
      place.remove();
      delete box.dataset.view;
      finishCode(box);
      const note = document.createElement("p");
      note.className = "md-code-note";
      note.textContent = t.notDrawn;
      head.after(note);
    });
}

/** A mark leads to its note, and the note back to its mark. */
function finishNote(mark: HTMLElement): void {
  if (mark.querySelector("button")) return;
  const label = mark.textContent ?? "";
  const isNote = mark.parentElement?.classList.contains("md-note") ?? false;
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = label;
  button.ariaLabel = isNote ? t.backToText(label) : t.toNote(label);
  button.addEventListener("click", () => {
    const marks = mark.closest(".md")?.querySelectorAll<HTMLElement>(".md-note-mark") ?? [];
    for (const other of marks) {
      const isOther = (other.parentElement?.classList.contains("md-note") ?? false) !== isNote;
      if (!isOther || other.textContent !== label) continue;
      other.scrollIntoView({ block: "center" });
      other.querySelector("button")?.focus({ preventScroll: true });
      return;
    }
  });
  mark.replaceChildren(button);
}
