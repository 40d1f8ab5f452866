/** Answers that go on where they were cut, and that are heard or copied without Markdown's signs. */
import { describe, expect, it } from "vitest";
import { pieces } from "../../../src/browser/speech";
import { plainText } from "../../../src/chat/messages/plain";
import { emptyConversation, reduce } from "../../../src/store/conversation";
import { timeline } from "../../../src/store/timeline";
import { CONVERSATION, conversation, message, snapshot, turn } from "../../rows";

describe("an answer that was cut off", () => {
  it("REL-424: is one text with what it goes on with, and is found by each of its messages", () => {
    const state = reduce(
      emptyConversation(CONVERSATION),
      snapshot({
        conversation: conversation({ leaf_id: "m3" }),
        messages: [
          message({ id: "u1", role: "user", text: "Tell", status: "complete" }),
          message({ id: "m1", parent_id: "u1", text: "```py\na = ", status: "complete", is_cut: true }),
          message({ id: "m2", parent_id: "m1", step: 1, text: "1\n", status: "complete", is_cut: true }),
          message({ id: "m3", parent_id: "m2", step: 2, text: "```", status: "complete" }),
        ],
        turns: [turn({ status: "completed", finished_at: "2026-11-21T08:00:09Z" })],
      }),
    );
    const answer = timeline(state).find((item) => item.kind === "answer");
    const [segment, ...others] = answer?.kind === "answer" ? answer.segments : [];
    expect(others).toEqual([]);
    expect(segment).toMatchObject({ kind: "text", earlier: ["m1", "m2"], message: { id: "m3" } });
    expect(segment?.kind === "text" && segment.message.text).toBe("```py\na = 1\n```");
  });
});

describe("plain text", () => {
  it("REL-426: keeps words, lines, list marks, cells and code", () => {
    const text =
      "# Plan\n\nDo **this** [now](https://a.example).\n\n- one\n- two\n\n3. three\n4. four\n\n" +
      "| a | b |\n|---|---|\n| 1 | 2 |\n\n```py\nx = 1\n  y\n```";
    expect(plainText(text)).toBe(
      "Plan\n\nDo this now.\n\n- one\n- two\n\n3. three\n4. four\n\na\tb\n1\t2\n\nx = 1\n  y",
    );
  });
});

describe("reading aloud", () => {
  it("REL-426: takes whole sentences, and cuts only those that are too long for browsers", () => {
    expect(pieces("One. Two!\nThree")).toEqual(["One.", "Two!", "Three"]);
    const long = pieces(`${"word ".repeat(100)}end.`);
    expect(long.length).toBeGreaterThan(2);
    expect(Math.max(...long.map((part) => part.length))).toBeLessThanOrEqual(221);
    expect(long.join(" ")).toBe(`${"word ".repeat(100)}end.`);
    expect(pieces("x".repeat(500)).join("")).toBe("x".repeat(500));
  });
});
