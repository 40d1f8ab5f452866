/** Markdown that grows: only the last blocks are rendered again, and at the end all is as if rendered at once. */
import type { Token } from "marked";
import remend from "remend";
import { lex, renderText, renderTokens } from "./render";
import { notesIn } from "./syntax";

const isBlock = (token: Token): boolean => token.type !== "space" && token.type !== "def";

const HIGHEST = 3; // below the heading of the message

/** Readers of a screen hear no level that is skipped: answers begin with `##` or `###` as they like. */
function tellLevels(root: HTMLElement): void {
  const above: number[] = [];
  for (const heading of root.querySelectorAll("h3, h4, h5, h6")) {
    const written = Number(heading.tagName.slice(1));
    while ((above.at(-1) ?? 0) >= written) above.pop();
    const level = HIGHEST + above.length;
    above.push(written);
    if (level === written) heading.removeAttribute("aria-level");
    else heading.setAttribute("aria-level", String(level));
  }
}

export class MarkdownStream {
  private text = "";
  /** Where in the text the tokens that may still change begin. */
  private head = 0;
  /** How many blocks before `head` are finished. */
  private done = 0;
  private seen: string[] = [];
  private hasNewHeading = false;
  private notes: ReadonlySet<string> = new Set();

  constructor(
    private readonly root: HTMLElement,
    /** Called once for every block that will not change any more. */
    private readonly settled: (block: HTMLElement) => void,
  ) {}

  /** Bring the element to `text`, which usually is what it was plus a few words. */
  update(text: string, isEnd: boolean): void {
    if (!text.startsWith(this.text)) this.head = this.done = 0;
    this.text = text;
    if (isEnd) this.head = this.done = 0; // one pass over the whole, so that reference links resolve
    this.notes = notesIn(text);
    const all = lex(text.slice(this.head));
    const blocks = all.filter(isBlock);
    blocks.forEach((token, j) => {
      this.draw(this.done + j, token, !isEnd && j === blocks.length - 1);
    });
    while (this.root.children.length > this.done + blocks.length) this.root.lastElementChild?.remove();
    this.seen.length = this.root.children.length;
    if (this.hasNewHeading) tellLevels(this.root);
    this.hasNewHeading = false;
    if (!isEnd) this.forgetFinished(all, blocks.length);
  }

  private draw(at: number, token: Token, isOpen: boolean): void {
    const html = isOpen ? renderText(remend(token.raw), this.notes) : renderTokens([token], this.notes);
    let box = this.root.children[at] as HTMLElement | undefined;
    if (!box) {
      box = document.createElement("div");
      box.dir = "auto"; // each block runs as its first letters do
      this.root.append(box);
    }
    if (this.seen[at] !== html) {
      this.seen[at] = html;
      box.innerHTML = html; // sanitized in render.ts
      this.hasNewHeading ||= /<h\d/.test(html);
      delete box.dataset.settled;
    }
    if (!isOpen && !box.dataset.settled) {
      box.dataset.settled = "1";
      this.settled(box);
    }
  }

  /** The last two blocks may still grow together (a list, a table); the ones before them are done. */
  private forgetFinished(all: Token[], blocks: number): void {
    let left = blocks;
    while (left > 2) {
      const token = all.shift();
      if (!token) return;
      this.head += token.raw.length;
      if (isBlock(token)) {
        left -= 1;
        this.done += 1;
      }
    }
  }
}
