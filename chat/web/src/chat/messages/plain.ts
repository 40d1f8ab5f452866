/** Markdown without its signs, as people paste it into a mail or hear it read. */
import { renderText } from "../../markdown/render";

const BLOCKS = "P DIV H3 H4 H5 H6 LI TR PRE BLOCKQUOTE HR".split(" ");

export function plainText(markdown: string): string {
  const root = document.createElement("div");
  root.innerHTML = renderText(markdown); // sanitized
  for (const head of root.querySelectorAll(".md-code-head")) head.remove();
  let text = "";
  const walk = (node: Node, isCode: boolean) => {
    for (const child of node.childNodes) {
      if (!(child instanceof HTMLElement)) {
        const words = isCode ? child.textContent : child.textContent?.replace(/\s+/g, " ");
        if (isCode || words?.trim() || !text.endsWith("\n")) text += words;
        continue;
      }
      const isBlock = BLOCKS.includes(child.tagName);
      if (isBlock && text && !text.endsWith("\n")) text += "\n";
      if (child.tagName === "LI") text += `${markOf(child)} `;
      if (child.tagName === "BR") text += "\n";
      if (/^T[DH]$/.test(child.tagName) && child.previousElementSibling) text += "\t";
      walk(child, isCode || child.tagName === "PRE");
      if (isBlock && !text.endsWith("\n")) text += "\n";
      if (/^(?:P|PRE|H\d|UL|OL|TABLE|BLOCKQUOTE)$/.test(child.tagName) && !child.closest("li")) text += "\n";
    }
  };
  walk(root, false);
  return text
    .replace(/[ \u00a0]+\n/g, "\n")
    .replace(/\n{3,}/g, "\n\n")
    .trim();
}

function markOf(item: HTMLElement): string {
  const list = item.parentElement;
  if (list?.tagName !== "OL") return "-";
  const start = Number(list.getAttribute("start") ?? 1);
  return `${start + [...list.children].indexOf(item)}.`;
}
