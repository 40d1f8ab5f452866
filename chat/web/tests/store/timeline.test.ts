import { describe, expect, it } from "vitest";
import { emptyConversation, reduce } from "../../src/store/conversation";
import { inPieces } from "../../src/store/paths";
import { activeTurn, activeTurns, isShown, timeline, waitingCalls } from "../../src/store/timeline";
import type { Snapshot } from "../../src/wire";
import { CONVERSATION, conversation, message, snapshot, toolCall, turn } from "../rows";

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

  it("shows an excerpt alone, without what waits below the end of the path", () => {
    const answer = message({ id: "a1", parent_id: "u1", status: "complete", text: "Hello" });
    const later = message({ id: "u9", role: "user", parent_id: "lost", turn_id: "t9", status: "complete" });
    const base = state({ messages: [question, answer, later], turns: [turn({ status: "completed" })] });
    const excerpt = { ...base, conversation: conversation({ leaf_id: "u9" }), excerptEnd: "a1" };
    expect(timeline(excerpt).map((item) => item.key)).toEqual(["u1", "turn-t1"]);
    expect(isShown(excerpt, "a1")).toBe(true);
    expect(isShown(excerpt, "u9")).toBe(false);
    // Of a question whose answer is not read yet nothing is made up.
    expect(timeline({ ...excerpt, excerptEnd: "u1" }).map((item) => item.key)).toEqual(["u1"]);
  });

  it("shows a turn that has no message yet as thinking, and a failed one with its error", () => {
    const [, thinking] = timeline(state({ messages: [question], turns: [turn({ status: "queued" })] }));
    expect(thinking).toMatchObject({ kind: "answer", isThinking: true, isLast: true });
    const [, failed] = timeline(state({ messages: [question], turns: [turn({ status: "failed" })] }));
    expect(failed).toMatchObject({ kind: "answer", isThinking: false, turn: { status: "failed" } });
  });

  it("says a notice once, at the newest of the answers in a row that have it", () => {
    const notices = [
      "notes is not used. The oldest 9 were left out.",
      "notes is not used. The oldest 10 were left out.",
      null,
      "notes is not used.",
    ];
    const messages = notices.flatMap((_notice, n) => [
      message({
        id: `u${n}`,
        role: "user",
        parent_id: n ? `a${n - 1}` : null,
        turn_id: `t${n}`,
        status: "complete",
      }),
      message({ id: `a${n}`, parent_id: `u${n}`, turn_id: `t${n}`, text: "Hi", status: "complete" }),
    ]);
    const turns = notices.map((notice, n) => turn({ id: `t${n}`, status: "completed", notice }));
    const answers = timeline(state({ messages, turns })).filter((item) => item.kind === "answer");
    expect(answers.map((item) => item.isNoticeRepeated)).toEqual([true, false, false, false]);
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
    expect(timeline(grown)[1]).toMatchObject({ versions: ["m1", "m2"] });

    const back = reduce(grown, {
      type: "conversation.changed",
      conversation_id: CONVERSATION,
      seq: 2,
      conversation: conversation({ leaf_id: "m1" }),
    });
    expect(shown(timeline(back))).toEqual(["user", "t1:1"]);
  });

  it("keeps the items of which nothing changed, so that they need not be drawn again", () => {
    const first = message({ id: "m1", parent_id: "u1", text: "First", status: "complete" });
    const next = message({ id: "u2", parent_id: "m1", role: "user", turn_id: "t2", text: "And?" });
    const begun = state({
      conversation: conversation({ leaf_id: "m2" }),
      messages: [question, first, next, message({ id: "m2", parent_id: "u2", turn_id: "t2", text: "Se" })],
      turns: [turn({ status: "completed" }), turn({ id: "t2" })],
      tool_calls: [toolCall({ message_id: "m1" })],
    });
    const before = timeline(begun);
    const told = { type: "text.delta", conversation_id: CONVERSATION, message_id: "m2" } as const;
    const after = timeline(reduce(begun, { ...told, offset: 2, text: "cond" }), before);
    expect(after.map((item, at) => item === before[at])).toEqual([true, true, true, false]);
    expect(after[3]).toMatchObject({ last: { text: "Second" } });

    const call = toolCall({ message_id: "m1", status: "succeeded" });
    const ended = reduce(begun, {
      type: "tool_call.changed",
      conversation_id: CONVERSATION,
      seq: 1,
      tool_call: call,
    });
    const changed = timeline(ended, before);
    expect(changed.map((item, at) => item === before[at])).toEqual([true, false, true, true]);
  });
});

describe("pieces of a long path", () => {
  const path = Array.from({ length: 25 }, (_, at) =>
    message({ id: `m${at}`, parent_id: at === 0 ? null : `m${at - 1}` }),
  );

  it("come from the end, and lose nothing that stands beside the path", () => {
    const beside = message({ id: "other", parent_id: "m3", is_outline: true });
    const pieces = inPieces([...path, beside], "m24");
    expect(pieces.map((piece) => piece.length)).toEqual([11, 10, 5]);
    expect(pieces[0]?.map((one) => one.id)).toContain("other");
    expect(pieces[2]?.map((one) => one.id)).toEqual(["m0", "m1", "m2", "m3", "m4"]);
  });

  it("are one where nothing of the path is there", () => {
    expect(inPieces(path, "unknown")).toEqual([path]);
  });
});

describe("answers that stand side by side", () => {
  const done = { status: "completed", comparison_id: "c", finished_at: "2026-11-21T08:00:09Z" } as const;
  const rows: Partial<Snapshot> = {
    conversation: conversation({ comparison_id: "c", leaf_id: "m2", status: "running" }),
    messages: [
      question,
      message({ id: "m1", turn_id: "t1", parent_id: "u1", text: "From fi" }),
      message({ id: "m2", turn_id: "t2", parent_id: "u1", text: "From second", status: "complete" }),
    ],
    turns: [
      turn({ id: "t1", comparison_id: "c", asked_model: { provider_id: null, name: "first" } }),
      turn({ ...done, id: "t2", place: 1, created_at: "2026-11-21T07:59:59Z" }),
    ],
  };

  it("are one item with an answer for each model, and grow each by its own words", () => {
    const before = state(rows);
    const items = timeline(before);
    expect(items.map((item) => item.kind)).toEqual(["user", "comparison"]);
    const item = items[1];
    if (item?.kind !== "comparison") throw new Error("no comparison");
    expect(item.answers.map((one) => one.turn?.id)).toEqual(["t1", "t2"]);
    expect(item.kept?.turn?.id).toBe("t2");
    expect(activeTurns(before).map((one) => one.id)).toEqual(["t1"]);
    expect([isShown(before, "m1"), isShown(before, "m2"), isShown(before, "m9")]).toEqual([
      true,
      true,
      false,
    ]);
    const after = reduce(before, {
      type: "text.delta",
      conversation_id: CONVERSATION,
      message_id: "m1",
      offset: 7,
      text: "rst",
    });
    const grown = timeline(after)[1];
    if (grown?.kind !== "comparison") throw new Error("no comparison");
    expect(
      grown.answers.map(({ segments: [one] }) => (one?.kind === "text" ? one.message.text : "")),
    ).toEqual(["From first", "From second"]);
  });

  it("are the chosen answer with arrows to the others, once the server says which", () => {
    const before = state(rows);
    const after = reduce(before, {
      type: "conversation.changed",
      conversation_id: CONVERSATION,
      seq: (before.seq ?? 0) + 1,
      conversation: conversation({ comparison_id: null, leaf_id: "m1" }),
    });
    const items = timeline(after);
    expect(items.map((item) => item.kind)).toEqual(["user", "answer"]);
    const answer = items[1];
    expect(answer).toMatchObject({ first: { id: "m1" }, versions: ["m1", "m2"] });
  });
});
