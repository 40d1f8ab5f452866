/** Drafts of several devices: the last writer wins by time. */
import { beforeAll, expect, it } from "vitest";
import { openPage } from "./page";

let drafts: typeof import("../src/chat/draft");

beforeAll(async () => {
  openPage();
  drafts = await import("../src/chat/draft");
});

it("REL-430: takes what was written later elsewhere, and that a draft was sent there", () => {
  const at = (name: string) => (name === "c1" ? Date.parse("2026-11-22T10:00:00Z") : 0);
  const draft = (conversation_id: string | null, text: string, time: string) => ({
    conversation_id,
    text,
    written_at: `2026-11-22T${time}Z`,
  });
  const told = [draft("c1", "older", "09:59:59"), draft(null, "start", "08:00:00")];
  expect(drafts.newer(told, at)).toEqual([["home", "start", Date.parse("2026-11-22T08:00:00Z")]]);
  expect(drafts.newer([draft("c1", "", "10:00:01")], at)).toHaveLength(1);
});
