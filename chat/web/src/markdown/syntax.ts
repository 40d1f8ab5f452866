/** What Markdown has beside its own signs: maths between dollars or in TeX's brackets, and footnotes. Pure. */
import type { TokenizerAndRendererExtension, Tokens } from "marked";
import { escapeHtml } from "./escape";

const LONGEST_MATHS = 5_000;

/** Between two dollars as Pandoc reads it, so that prices stay prices: "$5 and $10" is no formula. */
const INLINE = /^\$(?![\s$])((?:\\[\s\S]|[^\\$\n])*?[^\\\s$])\$(?![\d$])/;
const INLINE_DOUBLE = /^\$\$([^$\n]+?)\$\$/;
const BRACKETS = /^\\\(([\s\S]+?)\\\)/;
const BLOCK = /^ {0,3}(?:\$\$([\s\S]+?)\$\$|\\\[([\s\S]+?)\\\])[ \t]*(?:\n+|$)/;

const inlineMaths: TokenizerAndRendererExtension = {
  name: "maths",
  level: "inline",
  start: (source) => {
    const at = source.search(/\$|\\\(/);
    return at < 0 ? undefined : at;
  },
  tokenizer(source) {
    const match = INLINE_DOUBLE.exec(source) ?? INLINE.exec(source) ?? BRACKETS.exec(source);
    const text = match?.[1]?.trim();
    if (!match || !text || text.length > LONGEST_MATHS) return undefined;
    return { type: "maths", raw: match[0], text };
  },
  renderer: ({ text }) => `<span class="md-math">${escapeHtml(String(text))}</span>`,
};

const mathsBlock: TokenizerAndRendererExtension = {
  name: "mathsBlock",
  level: "block",
  start: (source) => {
    const at = source.search(/(?:^|\n) {0,3}(?:\$\$|\\\[)/);
    return at < 0 ? undefined : at;
  },
  tokenizer(source) {
    const match = BLOCK.exec(source);
    const text = (match?.[1] ?? match?.[2])?.trim();
    if (!match || !text || text.length > LONGEST_MATHS || /\n[ \t]*\n/.test(text)) return undefined;
    return { type: "mathsBlock", raw: match[0], text };
  },
  renderer: ({ text }) => `<div class="md-math-block">${escapeHtml(String(text))}</div>`,
};

export const maths = [inlineMaths, mathsBlock];

const LABEL = "\\[\\^([\\w-]{1,30})\\]";
const MARK = new RegExp(`^${LABEL}(?!:)`);
/** The note itself: its first line, and what is indented below it. */
const NOTE = new RegExp(`^ {0,3}${LABEL}:[ \\t]*([^\\n]*(?:\\n(?:[ \\t]*\\n)*[ \\t]{2,}[^\\n]+)*)(?:\\n+|$)`);
const NOTES = new RegExp(`(?:^|\\n) {0,3}${LABEL}:`, "g");

/** The labels of all footnotes that a text explains: a mark of any other stays the words it is. */
export const notesIn = (text: string): ReadonlySet<string> =>
  new Set([...text.matchAll(NOTES)].map((match) => match[1] ?? ""));

let known: ReadonlySet<string> = new Set();

/** Say which footnotes there are, before blocks of their text are rendered. */
export function knowNotes(labels: ReadonlySet<string>): void {
  known = labels;
}

const noteMark: TokenizerAndRendererExtension = {
  name: "noteMark",
  level: "inline",
  start: (source) => {
    const at = source.indexOf("[^");
    return at < 0 ? undefined : at;
  },
  tokenizer(source) {
    const match = MARK.exec(source);
    return match ? { type: "noteMark", raw: match[0], label: match[1] } : undefined;
  },
  renderer: ({ raw, label }) =>
    known.has(String(label))
      ? `<sup class="md-note-mark">${escapeHtml(String(label))}</sup>`
      : escapeHtml(raw),
};

const note: TokenizerAndRendererExtension = {
  name: "note",
  level: "block",
  start: (source) => {
    const at = source.search(/(?:^|\n) {0,3}\[\^/);
    return at < 0 ? undefined : at;
  },
  tokenizer(source) {
    const match = NOTE.exec(source);
    if (!match) return undefined;
    const text = (match[2] ?? "").replace(/\n[ \t]{2,4}/g, "\n");
    return { type: "note", raw: match[0], label: match[1], tokens: this.lexer.blockTokens(text, []) };
  },
  childTokens: ["tokens"],
  renderer(token) {
    const inner = this.parser.parse((token as Tokens.Generic).tokens ?? []);
    return (
      `<div class="md-note"><sup class="md-note-mark">${escapeHtml(String(token.label))}</sup>` +
      `<div>${inner}</div></div>`
    );
  },
};

export const notes = [noteMark, note];
