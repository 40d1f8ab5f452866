import { expect, test, vi } from "vitest";
import { fileOf, piecesOf } from "../../../src/markdown/marks";
import type { KnowledgeFile } from "../../../src/wire";
import { openPage } from "../../page";

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

test("REL-1153: a mark leads to a file of the bud that was asked, whichever the chat's is", async () => {
  openPage({});
  const { citeBlock } = await import("../../../src/chat/messages/citations");
  const asked = vi
    .spyOn(globalThis, "fetch")
    .mockResolvedValue(Response.json([{ id: "1", name: "poems.md" }]));
  const block = document.createElement("p");
  block.textContent = "It rhymes [poems.md, line 3].";
  citeBlock(block, "poet");
  await vi.waitFor(() => expect(block.querySelector(".md-cite")?.textContent).toBe("poems.md, line 3"));
  expect(String(asked.mock.calls[0]?.[0])).toContain("buds/poet/knowledge/");
  asked.mockRestore();
});
