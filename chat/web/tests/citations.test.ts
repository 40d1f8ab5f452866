import { expect, test } from "vitest";
import { fileOf, piecesOf } from "../src/markdown/marks";
import type { KnowledgeFile } from "../src/wire";

test("marks of pages and lines are found, and other brackets are not", () => {
  const text = "So it is [a (1).pdf, p. 12], see [notes.md, lines 3–9] and [1] or [x, y].";
  const found = piecesOf(text);
  expect(found.map((piece) => piece.text).join("")).toBe(text);
  expect(found.flatMap((piece) => piece.citation ?? [])).toEqual([
    { name: "a (1).pdf", page: 12, line: null },
    { name: "notes.md", page: null, line: 3 },
  ]);
});

test("a mark names a file whatever its brackets and letters", () => {
  const files = [{ id: "1", name: "A [1].pdf" }] as KnowledgeFile[];
  expect(fileOf(files, "a (1).pdf")?.id).toBe("1");
  expect(fileOf(files, "knowledge/A [1].pdf")?.id).toBe("1");
  expect(fileOf(files, "b.pdf")).toBeUndefined();
});
