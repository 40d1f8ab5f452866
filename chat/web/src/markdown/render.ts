/**
 * Markdown of models and servers to safe HTML.
 *
 * Raw HTML is text here, so nothing a model writes can look like a part of the page; what the renderer makes is
 * then sanitized by allow-list all the same. Links lead to http, https or mailto, images are links to their host.
 * Maths, diagrams, tables and footnotes are plain text and tables here; `finish.ts` makes more of them.
 */
import DOMPurify from "dompurify";
import { Marked, type Token, type Tokens } from "marked";
import common from "../texts/common";
import { escapeHtml } from "./escape";
import { LINK, placeOf, safeHref } from "./links";
import { knowNotes, maths, notes } from "./syntax";

/** Characters that a cell may have without counting as words that need room. */
const SHORT_CELL = 20;
const LINK_ATTRIBUTES = 'target="_blank" rel="noopener noreferrer nofollow"';

const marked = new Marked({
  gfm: true,
  extensions: [...maths, ...notes],
  renderer: {
    html: ({ text }: Tokens.HTML | Tokens.Tag) => (/^<br\s*\/?>\s*$/i.test(text) ? "<br>" : escapeHtml(text)),
    heading({ tokens, depth }: Tokens.Heading) {
      const level = Math.min(depth + 2, 6); // the page has its own first two levels
      const inner = this.parser.parseInline(tokens);
      return inner === "" ? "" : `<h${level}>${inner}</h${level}>`; // signs alone announce nothing
    },
    link({ href, tokens }: Tokens.Link) {
      const inner = this.parser.parseInline(tokens);
      const address = safeHref(href);
      if (address) return `<a href="${escapeHtml(address)}" ${LINK_ATTRIBUTES}>${inner}</a>`;
      // No link, but what it says is not lost, such as a telephone number behind a name.
      const place = escapeHtml(placeOf(href));
      return place === "" || inner.includes(place) ? inner : `${inner} (${place})`;
    },
    image({ href, text }: Tokens.Image) {
      const address = safeHref(href);
      const name = escapeHtml(text || common.image);
      if (!address || !/^https?:/i.test(address)) return `[${name}]`;
      const host = escapeHtml(new URL(address).host);
      return `<a class="md-image" href="${escapeHtml(address)}" ${LINK_ATTRIBUTES}>${common.imageOn(name, host)}</a>`;
    },
    listitem(item: Tokens.ListItem) {
      const mark = item.task ? ' class="md-task"' : "";
      return `<li${mark}>${this.parser.parse(item.tokens)}</li>\n`;
    },
    checkbox: ({ checked }: Tokens.Checkbox) => `<span class="md-check">${checked ? "☑" : "☐"}</span> `,
    // With a direction of its own, code does not decide on that of the paragraph that it begins.
    codespan: ({ text }: Tokens.Codespan) => `<code dir="ltr">${escapeHtml(text)}</code>`,
    code({ text, lang }: Tokens.Code) {
      if (lang === "math") return `<div class="md-math-block">${escapeHtml(text)}</div>`;
      const language = /^[\w+#.-]{1,30}/.exec(lang ?? "")?.[0] ?? "";
      const name = language ? ` class="language-${escapeHtml(language)}"` : "";
      return (
        `<div class="md-code"><div class="md-code-head"><span>${escapeHtml(language || common.textBlock)}</span></div>` +
        `<pre tabindex="0"><code${name}>${escapeHtml(text.replace(/\n$/, ""))}\n</code></pre></div>`
      );
    },
    table({ header, rows }: Tokens.Table) {
      const cell = (c: Tokens.TableCell, tag: string) => {
        const align = c.align ? ` align="${c.align}"` : "";
        const words = c.text.length > SHORT_CELL ? ' class="md-words"' : "";
        return `<${tag}${align}${words}>${this.parser.parseInline(c.tokens)}</${tag}>`;
      };
      const head = header.map((c) => cell(c, "th")).join("");
      const body = rows.map((row) => `<tr>${row.map((c) => cell(c, "td")).join("")}</tr>`).join("");
      return `<div class="md-table" tabindex="0"><table><thead><tr>${head}</tr></thead><tbody>${body}</tbody></table></div>`;
    },
  },
});

const CLASS =
  /^(?:md-code|md-code-head|md-table|md-image|md-math|md-math-block|md-task|md-check|md-note|md-note-mark|md-words|language-[\w+#.-]{1,30})$/;
const TAGS =
  "a blockquote br code del div em h3 h4 h5 h6 hr li ol p pre span strong sup table tbody td th thead tr ul".split(
    " ",
  );

const purifier = DOMPurify();
purifier.addHook("uponSanitizeAttribute", (_, data) => {
  if (data.attrName === "class" && !CLASS.test(data.attrValue)) data.keepAttr = false;
  if (data.attrName === "href" && safeHref(data.attrValue) === null) data.keepAttr = false;
});

export function sanitize(html: string): string {
  return purifier.sanitize(html, {
    ALLOWED_TAGS: TAGS,
    ALLOWED_ATTR: ["href", "target", "rel", "class", "align", "start", "tabindex", "dir"],
    ALLOWED_URI_REGEXP: LINK,
    ADD_URI_SAFE_ATTR: ["target", "rel", "align", "start", "tabindex", "dir"], // values that are not addresses
    ALLOW_DATA_ATTR: false,
    ALLOW_ARIA_ATTR: false,
  });
}

export const lex = (text: string): Token[] => marked.lexer(text);
const NO_NOTES: ReadonlySet<string> = new Set();

/** HTML of some blocks; `labels`: the footnotes of their whole text. */
export function renderTokens(tokens: Token[], labels = NO_NOTES): string {
  knowNotes(labels);
  return sanitize(marked.parser(tokens));
}

export function renderText(text: string, labels = NO_NOTES): string {
  knowNotes(labels);
  return sanitize(marked.parse(text, { async: false }));
}

/** The pieces of code in a text, in their order, without formulas. */
export function codeIn(text: string): string[] {
  const found: string[] = [];
  marked.walkTokens(marked.lexer(text), (token) => {
    if (token.type === "code" && (token as Tokens.Code).lang !== "math")
      found.push((token as Tokens.Code).text);
  });
  return found;
}
