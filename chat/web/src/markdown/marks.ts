/** Marks in answers that cite a place of a file. Pure. */
import type { KnowledgeFile } from "../wire";

/** As `chat/documents/passages.py` writes them, and "lines 3–9" as models like to. */
export const MARK = /\[([^[\]\n]{1,200}), (?:p\. ?(\d{1,6})|lines? (\d{1,8})(?:[–-]\d{1,8})?)\]/g;

export interface Citation {
  name: string;
  page: number | null;
  line: number | null;
}

interface Piece {
  text: string;
  citation: Citation | null;
}

/** A text in pieces, some of which are marks. */
export function piecesOf(text: string): Piece[] {
  const pieces: Piece[] = [];
  let at = 0;
  for (const match of text.matchAll(MARK)) {
    if (match.index > at) pieces.push({ text: text.slice(at, match.index), citation: null });
    const page = match[2] ? Number(match[2]) : null;
    pieces.push({
      text: match[0],
      citation: { name: match[1] ?? "", page, line: match[3] ? Number(match[3]) : null },
    });
    at = match.index + match[0].length;
  }
  if (at < text.length) pieces.push({ text: text.slice(at), citation: null });
  return pieces;
}

/** The file that a mark names: marks have round brackets for square ones. */
export function fileOf(files: readonly KnowledgeFile[], name: string): KnowledgeFile | undefined {
  const bare = (text: string) => text.replaceAll("[", "(").replaceAll("]", ")").toLowerCase();
  const wanted = bare(name.replace(/^knowledge\//, ""));
  return files.find((file) => bare(file.name) === wanted);
}
