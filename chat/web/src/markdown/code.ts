/** What a finished block gets on top: a copy button on code, and colours from highlight.js, loaded when first needed. */
import DOMPurify from "dompurify";
import common from "../texts/common";
import { copyText } from "../ui/copy";
import { iconHtml } from "../ui/icon";

const LIMIT = 60_000;
type Highlighter = typeof import("highlight.js/lib/common")["default"];
let highlighter: Promise<Highlighter> | undefined;

function load(): Promise<Highlighter> {
  highlighter ??= import("highlight.js/lib/common").then((module) => module.default);
  return highlighter;
}

function addCopyButton(box: Element, code: HTMLElement): void {
  const head = box.querySelector(".md-code-head");
  if (!head || head.querySelector("button")) return;
  const button = document.createElement("button");
  button.type = "button";
  button.className = "copy-button";
  const idle = `${iconHtml("copy")}<span>${common.copy}</span>`;
  button.innerHTML = idle;
  button.addEventListener("click", async () => {
    if (!(await copyText(code.textContent ?? ""))) return;
    button.innerHTML = `${iconHtml("check")}<span>${common.copied}</span>`;
    setTimeout(() => {
      button.innerHTML = idle;
    }, 1600);
  });
  head.append(button);
}

/** HTML of coloured code: spans with classes and nothing else. */
export async function colours(text: string, language: string): Promise<string | null> {
  if (text.length > LIMIT) return null;
  const hljs = await load();
  if (!hljs.getLanguage(language)) return null;
  const { value } = hljs.highlight(text, { language, ignoreIllegals: true });
  return DOMPurify.sanitize(value, {
    ALLOWED_TAGS: ["span"],
    ALLOWED_ATTR: ["class"],
    ALLOW_DATA_ATTR: false,
  });
}

export function finishBlock(block: HTMLElement): void {
  for (const box of block.querySelectorAll(".md-code")) {
    const code = box.querySelector<HTMLElement>("pre > code");
    if (!code) continue;
    addCopyButton(box, code);
    const language = /language-([\w+#.-]+)/.exec(code.className)?.[1];
    const text = code.textContent ?? "";
    if (!language) continue;
    colours(text, language)
      .then((html) => {
        if (html !== null && code.isConnected && code.textContent === text) code.innerHTML = html;
      })
      .catch(() => {
        // Colours are a nicety; code without them is still code.
      });
  }
}
