/** Blocks of code: colours from highlight.js, loaded when first needed, numbered lines, wrapping, copying, differences. */
import DOMPurify from "dompurify";
import common from "../texts/common";
import t from "../texts/reading";
import { copyText } from "../ui/copy-text";
import { iconHtml } from "../ui/icon";
import { fetchPart } from "../ui/parts";

const LIMIT = 60_000;
/** From how many lines on they are numbered. */
const NUMBERED_FROM = 5;
const MOST_NUMBERED = 3_000;
const WRAP_KEY = "trellis.wrap";

type Highlighter = typeof import("highlight.js/lib/common")["default"];
let highlighter: Promise<Highlighter> | undefined;

function load(): Promise<Highlighter> {
  highlighter ??= fetchPart(() => import("highlight.js/lib/common")).then(
    (module) => module.default,
    (error: unknown) => {
      highlighter = undefined; // the next code asks again
      throw error;
    },
  );
  return highlighter;
}

function headButton(icon: Parameters<typeof iconHtml>[0], label: string): HTMLButtonElement {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "copy-button";
  button.innerHTML = `${iconHtml(icon)}<span class="max-[30rem]:sr-only">${label}</span>`;
  return button;
}

/** A button that copies what `text` gives, and says so. */
export function copyButton(text: () => string, label = common.copy): HTMLButtonElement {
  const button = headButton("copy", label);
  const idle = button.innerHTML;
  button.addEventListener("click", async () => {
    if (!(await copyText(text()))) return;
    button.innerHTML = `${iconHtml("check")}<span>${common.copied}</span>`;
    setTimeout(() => {
      button.innerHTML = idle;
    }, 1600);
  });
  return button;
}

/** A button that is on or off; `change` hears of it, also of how it begins. */
export function switchButton(
  icon: Parameters<typeof iconHtml>[0],
  label: string,
  isOn: boolean,
  change: (isOn: boolean) => void,
): HTMLButtonElement {
  const button = headButton(icon, label);
  const set = (next: boolean) => {
    button.setAttribute("aria-pressed", String(next));
    change(next);
  };
  button.title = label;
  button.addEventListener("click", () => set(button.getAttribute("aria-pressed") !== "true"));
  set(isOn);
  return button;
}

function wantsWrap(): boolean {
  try {
    return localStorage.getItem(WRAP_KEY) === "1";
  } catch {
    return false;
  }
}

function keepWrap(isOn: boolean): void {
  try {
    if (isOn) localStorage.setItem(WRAP_KEY, "1");
    else localStorage.removeItem(WRAP_KEY);
  } catch {
    // Without storage the choice holds for this block.
  }
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

/** Put each line into an element of its own; spans that go over several lines are split. */
export function splitLines(code: HTMLElement): HTMLElement[] {
  const lines: HTMLElement[] = [];
  let line = document.createElement("span");
  let open: HTMLElement = line;
  const begin = (path: readonly HTMLElement[]) => {
    line = document.createElement("span");
    line.className = "md-line";
    open = line;
    for (const span of path) {
      const copy = span.cloneNode(false) as HTMLElement;
      open.append(copy);
      open = copy;
    }
  };
  const walk = (node: Node, path: readonly HTMLElement[]) => {
    for (const child of node.childNodes) {
      if (child instanceof HTMLElement) {
        const outer = open;
        const copy = child.cloneNode(false) as HTMLElement;
        outer.append(copy);
        open = copy;
        walk(child, [...path, child]);
        open = open.parentElement ?? line;
        continue;
      }
      const pieces = (child.textContent ?? "").split("\n");
      pieces.forEach((piece, at) => {
        const isLast = at === pieces.length - 1;
        if (piece || !isLast) open.append(isLast ? piece : `${piece}\n`);
        if (isLast) return;
        lines.push(line);
        begin(path);
      });
    }
  };
  begin([]);
  walk(code, []);
  if (line.textContent) lines.push(line);
  code.replaceChildren(...lines);
  return lines;
}

/** What a line of a unified diff is. */
function diffClass(line: string): "head" | "hunk" | "added" | "removed" | "" {
  if (/^(?:diff |index |--- |\+\+\+ |rename |new file|deleted file|similarity )/.test(line)) return "head";
  if (line.startsWith("@@")) return "hunk";
  if (line.startsWith("+")) return "added";
  return line.startsWith("-") ? "removed" : "";
}

function showDifferences(lines: readonly HTMLElement[]): void {
  for (const line of lines) {
    const kind = diffClass(line.textContent ?? "");
    if (!kind) continue;
    line.dataset.change = kind;
    if (kind === "added" || kind === "removed") {
      const word = document.createElement("span");
      word.className = "sr-only";
      word.textContent = `${kind === "added" ? t.lineAdded : t.lineRemoved}: `;
      word.dataset.word = "";
      line.prepend(word);
    }
  }
}

/** The tools, colours and lines of one block of code. */
export function finishCode(box: HTMLElement): void {
  const code = box.querySelector<HTMLElement>("pre > code");
  const head = box.querySelector(".md-code-head");
  if (!code || !head || head.querySelector("button")) return;
  const text = code.textContent ?? "";
  const language = languageOf(code);
  head.append(
    switchButton("wrap", t.wrap, wantsWrap(), (isOn) => {
      if (isOn !== "wrap" in box.dataset) keepWrap(isOn);
      if (isOn) box.dataset.wrap = "";
      else delete box.dataset.wrap;
    }),
    copyButton(() => text),
  );
  const count = text.split("\n").length - 1;
  const lay = () => {
    if (count > MOST_NUMBERED) return;
    if (language === "diff") showDifferences(splitLines(code));
    else if (count >= NUMBERED_FROM && language && !/^(?:text|txt|plain\w*|markdown|md)$/.test(language)) {
      splitLines(code);
      box.dataset.numbered = "";
    }
  };
  if (!language || language === "diff") return lay();
  colours(text, language)
    .then((html) => {
      if (!code.isConnected || code.textContent !== text) return;
      if (html !== null) code.innerHTML = html;
      lay();
    })
    .catch(lay); // colours are a nicety; code without them is still code
}

export function languageOf(code: Element): string | undefined {
  return /language-([\w+#.-]+)/.exec(code.className)?.[1];
}
