/** Texts of a page that is only read: rendered as in the chat. Without a script they stay as they are. */
import { finishBlock } from "../markdown/finish";
import { MarkdownStream } from "../markdown/stream";
import { localTimes } from "./times";
import { tellTarget } from "./written-text";

export function showTexts(): void {
  for (const source of document.querySelectorAll<HTMLElement>("[data-markdown]")) {
    const rendered = document.createElement("div");
    rendered.className = "md";
    new MarkdownStream(rendered, finishBlock).update(source.textContent ?? "", true);
    rendered.querySelectorAll("a").forEach(tellTarget);
    source.replaceWith(rendered);
  }
  localTimes();
}
