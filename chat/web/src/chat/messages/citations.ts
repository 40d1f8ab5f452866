/** Marks such as "[handbook.pdf, p. 12]" in answers become links to that place, where the bud knows that file. */

import { place } from "../../app/place";
import { knowledgeOf, openKnowledge } from "../../artifacts/state";
import { type Citation, fileOf, MARK, piecesOf } from "../../markdown/marks";
import { openState } from "../../store/open-conversation";
import t from "../../texts/files";
import type { KnowledgeFile } from "../../wire";

const FRESH_MS = 60_000;
/** Files by bud, asked for when a mark is seen. */
const known = new Map<string, { at: number; files: Promise<KnowledgeFile[]> }>();

function filesOf(bud: string): Promise<KnowledgeFile[]> {
  const asked = known.get(bud);
  if (asked && Date.now() - asked.at < FRESH_MS) return asked.files;
  const files = knowledgeOf(bud);
  files.catch(() => known.delete(bud));
  known.set(bud, { at: Date.now(), files });
  return files;
}

/** Make links of the marks in a block that will not change any more. The files are those of the bud that answered. */
export function citeBlock(block: HTMLElement, answeredBy: string | null = null): void {
  const bud = answeredBy ?? openState.peek()?.conversation?.bud.id;
  if (!bud || !block.textContent?.match(MARK)) return;
  filesOf(bud)
    .then((files) => {
      if (files.length > 0) linkMarks(block, files);
    })
    .catch(() => undefined); // the marks stay words
}

function linkMarks(block: HTMLElement, files: readonly KnowledgeFile[]): void {
  const walker = document.createTreeWalker(block, NodeFilter.SHOW_TEXT);
  const texts: Text[] = [];
  while (walker.nextNode()) texts.push(walker.currentNode as Text);
  for (const text of texts) {
    if (text.parentElement?.closest("a, button, pre, code")) continue;
    const pieces = piecesOf(text.data);
    if (!pieces.some(({ citation }) => citation && fileOf(files, citation.name))) continue;
    text.replaceWith(
      ...pieces.map((piece) => {
        const file = piece.citation ? fileOf(files, piece.citation.name) : undefined;
        return file && piece.citation ? linkOf(piece.text, file, piece.citation) : piece.text;
      }),
    );
  }
}

function linkOf(mark: string, file: KnowledgeFile, citation: Citation): HTMLElement {
  const link = document.createElement("button");
  link.type = "button";
  link.className = "md-cite";
  link.textContent = mark.slice(1, -1);
  link.title = t.openPlace(file.name);
  link.addEventListener("click", () => {
    if (place.peek()) openKnowledge({ id: file.id, page: citation.page, line: citation.line });
  });
  return link;
}
