import { describe, expect, test } from "vitest";
import { choiceOf, formOf, isSameForm } from "../../src/store/sharing";
import type { Share } from "../../src/wire";

const person = { id: "p1", name: "Ada", email: "ada@example.org" };
const share: Share = {
  id: "s1",
  conversation_id: "c1",
  title: "Orders",
  link: "https://trellis.example.org/shared/abc/",
  audience: "people",
  people: [person],
  with_files: true,
  with_calls: false,
  expires_at: choiceOf({ ...formOf(null), ends: "2026-12-24" }, null).expires_at,
  is_open: true,
  shared_at: "2026-11-26T12:00:00Z",
  end_message_id: "m2",
  is_current: true,
  created_at: "2026-11-26T12:00:00Z",
};

describe("the form that shares a chat", () => {
  test("begins with the least that can be shared", () => {
    const choice = choiceOf(formOf(null), null);
    expect(choice).toEqual({
      audience: "people",
      people: [],
      with_files: false,
      with_calls: false,
      expires_at: null,
      until_message_id: null,
    });
  });

  test("begins with what is shared, and sends it as it was", () => {
    const form = formOf(share);
    expect(form.ends).toBe("2026-12-24");
    expect(choiceOf(form, share.end_message_id)).toEqual({
      audience: "people",
      people: ["p1"],
      with_files: true,
      with_calls: false,
      expires_at: share.expires_at,
      until_message_id: "m2",
    });
  });

  test("lets the last day count to its end", () => {
    const ends = new Date(choiceOf({ ...formOf(null), ends: "2026-12-24" }, null).expires_at ?? "");
    expect([ends.getDate(), ends.getHours(), ends.getMinutes()]).toEqual([24, 23, 59]);
  });

  test("names people only where they are the readers", () => {
    const everyone = { ...formOf(share), audience: "workspace" as const };
    expect(choiceOf(everyone, null).people).toEqual([]);
    expect(isSameForm(formOf(share), formOf(share))).toBe(true);
    expect(isSameForm(everyone, formOf(share))).toBe(false);
  });
});
