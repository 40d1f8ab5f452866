import { describe, expect, it } from "vitest";
import { emptyConversation, reduce } from "../src/store/conversation";
import { siblings } from "../src/store/paths";
import { activeTurn, timeline, waitingCalls } from "../src/store/timeline";
import type { Snapshot } from "../src/wire";
import { CONVERSATION, conversation, message, snapshot, toolCall, turn } from "./rows";

const state = (over: Partial<Snapshot>) => reduce(emptyConversation(CONVERSATION), snapshot(over));
const question = message({
  id: "u1",
  role: "user",
  text: "Hi",
  status: "complete",
  created_at: "2026-11-21T08:00:00Z",
});

describe("timeline", () => {
  it("hangs calls on the message that asked, and folds neighbours of several steps together", () => {
    const items = timeline(
      state({
        messages: [
          question,
          message({ id: "m1", step: 0, text: "Looking", status: "complete" }),
          message({ id: "m2", step: 1, text: "", status: "complete" }),
          message({ id: "m3", step: 2, text: "Found", status: "complete" }),
        ],
        turns: [turn({ status: "completed" })],
        tool_calls: [
          toolCall({ id: "c2", message_id: "m1", position: 1 }),
          toolCall({ id: "c1", message_id: "m1", position: 0 }),
          toolCall({ id: "c3", message_id: "m2" }),
        ],
      }),
    );
    expect(items.map((item) => item.kind)).toEqual(["user", "answer"]);
    const answer = items[1];
    if (answer?.kind !== "answer") throw new Error("no answer");
    expect(
      answer.segments.map((s) => (s.kind === "text" ? s.message.text : s.calls.map((c) => c.id))),
    ).toEqual(["Looking", ["c1", "c2", "c3"], "Found"]);
  });

  it("shows a turn that has no message yet as thinking, and a failed one with its error", () => {
    const [, thinking] = timeline(state({ messages: [question], turns: [turn({ status: "queued" })] }));
    expect(thinking).toMatchObject({ kind: "answer", isThinking: true, isLast: true });
    const [, failed] = timeline(state({ messages: [question], turns: [turn({ status: "failed" })] }));
    expect(failed).toMatchObject({ kind: "answer", isThinking: false, turn: { status: "failed" } });
  });

  it("does not think while text streams or a call runs", () => {
    const streaming = timeline(state({ messages: [question, message({ text: "He" })], turns: [turn()] }));
    expect(streaming[1]).toMatchObject({ isThinking: false });
    const calling = timeline(
      state({
        messages: [question, message({ status: "complete" })],
        turns: [turn()],
        tool_calls: [toolCall()],
      }),
    );
    expect(calling[1]).toMatchObject({ isThinking: false });
    const between = timeline(
      state({
        messages: [question, message({ status: "complete" })],
        turns: [turn()],
        tool_calls: [toolCall({ status: "succeeded" })],
      }),
    );
    expect(between[1]).toMatchObject({ isThinking: true });
  });

  it("puts the question before its steps even where the clocks disagree", () => {
    const late = { ...question, created_at: "2026-11-21T09:00:00Z" };
    const items = timeline(state({ messages: [message({ text: "x" }), late], turns: [turn()] }));
    expect(items.map((item) => item.kind)).toEqual(["user", "answer"]);
  });

  it("knows which turn is active and which calls wait", () => {
    const s = state({
      turns: [turn({ id: "t0", status: "completed" }), turn({ status: "waiting_for_approval" })],
      tool_calls: [toolCall(), toolCall({ id: "c2", status: "waiting_for_approval" })],
    });
    expect(activeTurn(s)?.id).toBe("t1");
    expect(waitingCalls(s).map((c) => c.id)).toEqual(["c2"]);
  });

  it("shows one path of the tree, and a turn that has only begun below its question", () => {
    const old = message({ id: "m1", parent_id: "u1", text: "First", status: "complete" });
    const fresh = turn({ id: "t2", created_at: "2026-11-21T08:01:00Z" });
    const begun = state({
      conversation: conversation({ leaf_id: "u1" }),
      messages: [question, old],
      turns: [turn({ status: "completed" }), fresh],
    });
    const shown = (items: ReturnType<typeof timeline>) =>
      items.map((item) => (item.kind === "answer" ? `${item.turn?.id}:${item.segments.length}` : item.kind));
    expect(shown(timeline(begun))).toEqual(["user", "t2:0"]);

    const grown = reduce(begun, {
      type: "message.saved",
      conversation_id: CONVERSATION,
      seq: 1,
      message: message({
        id: "m2",
        turn_id: "t2",
        parent_id: "u1",
        text: "Second",
        created_at: "2026-11-21T08:01:01Z",
      }),
    });
    expect(grown.conversation?.leaf_id).toBe("m2");
    expect(shown(timeline(grown))).toEqual(["user", "t2:1"]);
    expect(siblings(grown.messages, old).map((m) => m.id)).toEqual(["m1", "m2"]);

    const back = reduce(grown, {
      type: "conversation.changed",
      conversation_id: CONVERSATION,
      seq: 2,
      conversation: conversation({ leaf_id: "m1" }),
    });
    expect(shown(timeline(back))).toEqual(["user", "t1:1"]);
  });
});
