import { describe, expect, it } from "vitest";
import { type ConversationState, emptyConversation, reduce } from "../../src/store/conversation";
import type { ConversationEvent, Message, RowEvent, Snapshot, TextDelta } from "../../src/wire";
import { CONVERSATION, conversation, inputRequest, message, snapshot, toolCall, turn } from "../rows";

const start = (over: Partial<Snapshot> = {}): ConversationState =>
  reduce(emptyConversation(CONVERSATION), snapshot(over));
const saved = (seq: number, row: Message): RowEvent => ({
  type: "message.saved",
  conversation_id: CONVERSATION,
  seq,
  message: row,
});
const delta = (offset: number, text: string, id = "m1"): TextDelta => ({
  type: "text.delta",
  conversation_id: CONVERSATION,
  message_id: id,
  offset,
  text,
});

describe("row events", () => {
  it("upserts rows by id, in the order of their numbers", () => {
    let state = start();
    state = reduce(state, saved(1, message({ text: "a" })));
    state = reduce(state, saved(2, message({ text: "ab", status: "complete" })));
    expect(state.seq).toBe(2);
    expect(state.messages.map((m) => m.text)).toEqual(["ab"]);
  });

  it("ignores duplicates and what came before", () => {
    const state = start({ seq: 5, messages: [message({ text: "now" })] });
    expect(reduce(state, saved(5, message({ text: "old" })))).toBe(state);
    expect(reduce(state, saved(3, message({ text: "older" })))).toBe(state);
  });

  it("asks for a snapshot at a gap and takes nothing in until it comes", () => {
    let state = reduce(start({ seq: 5 }), saved(7, message({ text: "later" })));
    expect(state.stale).toBe(true);
    expect(state.messages).toEqual([]);
    state = reduce(state, saved(6, message({ text: "late" })));
    expect(state.messages).toEqual([]);
    state = reduce(state, snapshot({ seq: 7, messages: [message({ text: "whole" })] }));
    expect(state.stale).toBe(false);
    expect(state.messages.map((m) => m.text)).toEqual(["whole"]);
  });

  it("knows nothing before the first snapshot", () => {
    const empty = emptyConversation(CONVERSATION);
    expect(reduce(empty, saved(1, message()))).toBe(empty);
  });

  it("ignores events of another conversation", () => {
    const state = start();
    expect(reduce(state, { ...saved(1, message()), conversation_id: "other" })).toBe(state);
  });

  it("does not go back to a snapshot older than what it has", () => {
    const state = start({ seq: 9 });
    expect(reduce(state, snapshot({ seq: 8 }))).toBe(state);
  });

  it("compares what 'current' says with what it has", () => {
    const state = start({ seq: 4 });
    expect(reduce(state, { type: "current", ref: null, conversation_id: CONVERSATION, seq: 4 })).toBe(state);
    expect(reduce(state, { type: "current", ref: null, conversation_id: CONVERSATION, seq: 6 }).stale).toBe(
      true,
    );
  });
});

describe("deltas", () => {
  const streaming = start({ messages: [message({ text: "Hello" })] });
  const textOf = (state: ConversationState) => state.messages[0]?.text;

  it("appends at the end", () => expect(textOf(reduce(streaming, delta(5, " you")))).toBe("Hello you"));
  it("ignores what it knows", () => expect(reduce(streaming, delta(0, "Hell"))).toBe(streaming));
  it("appends only the rest of an overlap", () =>
    expect(textOf(reduce(streaming, delta(3, "lo there")))).toBe("Hello there"));
  it("asks for a snapshot beyond the end", () => expect(reduce(streaming, delta(6, "!")).stale).toBe(true));
  it("asks for a snapshot for a message it does not know", () =>
    expect(reduce(streaming, delta(0, "x", "m9")).stale).toBe(true));
  it("counts in UTF-16 code units", () => {
    const state = start({ messages: [message({ text: "🌱" })] });
    expect(textOf(reduce(state, delta(2, "!")))).toBe("🌱!");
  });
  it("keeps thoughts apart from the text", () => {
    const state = start({ messages: [message({ text: "Hello", reasoning: "Hm" })] });
    const after = reduce(state, { ...delta(2, "m."), type: "reasoning.delta" });
    expect(after.messages[0]?.reasoning).toBe("Hmm.");
    expect(textOf(after)).toBe("Hello");
    expect(reduce(state, { ...delta(4, "?"), type: "reasoning.delta" }).stale).toBe(true);
  });
  it("leaves a finished message alone", () => {
    const state = start({ messages: [message({ text: "done", status: "complete" })] });
    expect(reduce(state, delta(4, "!"))).toBe(state);
  });
});

describe("messages on their way out", () => {
  it("stand until the server shows them under their client id", () => {
    let state = start();
    state = reduce(state, { type: "local.sending", client_id: "k1", text: "hi", sent_at: "" });
    state = reduce(state, { type: "local.sending", client_id: "k1", text: "hi", sent_at: "" });
    expect(state.outgoing).toHaveLength(1);
    state = reduce(state, { type: "local.send_failed", client_id: "k1", error: "no" });
    expect(state.outgoing[0]?.error).toBe("no");
    state = reduce(state, { type: "local.resending", client_id: "k1" });
    state = reduce(state, saved(1, message({ id: "u1", role: "user", client_id: "k1", status: "complete" })));
    expect(state.outgoing).toEqual([]);
  });

  it("survive a snapshot that does not hold them and leave with one that does", () => {
    let state = reduce(start(), { type: "local.sending", client_id: "k1", text: "hi", sent_at: "" });
    state = reduce(state, snapshot({ seq: 1 }));
    expect(state.outgoing).toHaveLength(1);
    state = reduce(
      state,
      snapshot({ seq: 2, messages: [message({ id: "u1", role: "user", client_id: "k1" })] }),
    );
    expect(state.outgoing).toEqual([]);
  });
});

describe("what servers ask", () => {
  it("comes with the snapshot and with events, in the order asked", () => {
    let state = start({ input_requests: [inputRequest({ id: "i2" })] });
    const changed = (seq: number, row: ReturnType<typeof inputRequest>): RowEvent => ({
      type: "input_request.changed",
      conversation_id: CONVERSATION,
      seq,
      input_request: row,
    });
    state = reduce(state, changed(1, inputRequest({ id: "i1" })));
    state = reduce(state, changed(2, inputRequest({ id: "i2", status: "accepted", answer: { year: 2 } })));
    expect(state.inputRequests.map((r) => [r.id, r.status])).toEqual([
      ["i1", "pending"],
      ["i2", "accepted"],
    ]);
  });
});

describe("progress", () => {
  it("is kept while the call runs and gone when it ends", () => {
    let state = start({ tool_calls: [toolCall()] });
    state = reduce(state, {
      type: "tool_call.progress",
      conversation_id: CONVERSATION,
      tool_call_id: "c1",
      progress: 2,
      total: 5,
      message: "half",
    });
    expect(state.progress.c1?.progress).toBe(2);
    state = reduce(state, {
      type: "tool_call.changed",
      conversation_id: CONVERSATION,
      seq: 1,
      tool_call: toolCall({ status: "succeeded" }),
    });
    expect(state.progress).toEqual({});
  });
});

/** A small deterministic generator, so that a failure names a seed that shows it again. */
function random(seed: number): () => number {
  let a = seed;
  return () => {
    a = (a + 0x6d2b79f5) | 0;
    let t = Math.imul(a ^ (a >>> 15), 1 | a);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** A server that streams an answer: its events, and the picture it would give at any moment. */
function script(next: () => number): { event: ConversationEvent; picture: Snapshot }[] {
  const steps: { event: ConversationEvent; picture: Snapshot }[] = [];
  let seq = 0;
  const rows = { messages: [] as Message[], turns: [turn()], tool_calls: [toolCall({ status: "queued" })] };
  const picture = (): Snapshot => structuredClone(snapshot({ seq, ...rows, conversation: conversation() }));
  const words = "The quick 🦊 jumps over the lazy dog and then some".split(" ");
  for (let m = 0; m < 3; m += 1) {
    let row = message({ id: `m${m}`, step: m });
    rows.messages = [...rows.messages, row];
    seq += 1;
    steps.push({ event: saved(seq, row), picture: picture() });
    for (const word of words) {
      const piece = `${word} `;
      const event = delta(row.text.length, piece, row.id);
      row = { ...row, text: row.text + piece };
      rows.messages = rows.messages.map((other) => (other.id === row.id ? row : other));
      steps.push({ event, picture: picture() });
      if (next() < 0.1) {
        seq += 1;
        const changed = turn({ notice: `n${seq}` });
        rows.turns = [changed];
        steps.push({
          event: { type: "turn.changed", conversation_id: CONVERSATION, seq, turn: changed },
          picture: picture(),
        });
      }
    }
    row = { ...row, status: "complete" };
    rows.messages = rows.messages.map((other) => (other.id === row.id ? row : other));
    seq += 1;
    steps.push({ event: saved(seq, row), picture: picture() });
  }
  return steps;
}

describe("any interleaving", () => {
  it("ends in the server's picture, whatever is lost, doubled or held up", () => {
    for (let seed = 1; seed <= 300; seed += 1) {
      const next = random(seed);
      const steps = script(next);
      let state = emptyConversation(CONVERSATION);
      let held: ConversationEvent[] = [];
      state = reduce(state, snapshot({ turns: [turn()], tool_calls: [toolCall({ status: "queued" })] }));
      for (const { event, picture } of steps) {
        const dice = next();
        if (dice < 0.06) continue; // lost
        if (dice < 0.12) {
          held.push(event); // comes late
          continue;
        }
        state = reduce(state, event);
        if (dice < 0.2) state = reduce(state, event); // comes twice
        if (dice < 0.25) {
          for (const late of held) state = reduce(state, late);
          held = [];
        }
        if (state.stale && next() < 0.7) state = reduce(state, picture); // the healing snapshot
        const known = state.messages.at(-1);
        const truth = picture.messages.find((m) => m.id === known?.id);
        if (known && truth) expect(truth.text.startsWith(known.text), `seed ${seed}`).toBe(true);
      }
      const last = steps.at(-1)?.picture;
      if (!last) throw new Error("the script is empty");
      // The last word of a subscription: a repeated subscribe gives "current" or the snapshot.
      state = reduce(state, { type: "current", ref: null, conversation_id: CONVERSATION, seq: last.seq });
      if (state.stale) state = reduce(state, last);
      expect(state.messages, `seed ${seed}`).toEqual(last.messages);
      expect(state.turns, `seed ${seed}`).toEqual(last.turns);
      expect(state.seq).toBe(last.seq);
    }
  });

  it("keeps a queued message once: outgoing until the server shows it in the queue", () => {
    let state = reduce(emptyConversation(CONVERSATION), snapshot({}));
    state = reduce(state, { type: "local.sending", client_id: "q1", text: "next", sent_at: "" });
    const queued = {
      id: "q",
      conversation_id: CONVERSATION,
      client_id: "q1",
      text: "next",
      attachments: [],
      is_next: false,
      held_after: null,
      bud_id: null,
      compare: [],
      created_at: "",
    };
    state = reduce(state, { type: "queue.changed", conversation_id: CONVERSATION, seq: 1, queue: [queued] });
    expect(state.outgoing).toEqual([]);
    expect(state.queue).toEqual([queued]);
    state = reduce(state, { type: "queue.changed", conversation_id: CONVERSATION, seq: 2, queue: [] });
    expect(state.queue).toEqual([]);
  });
});

describe("a long conversation", () => {
  const path = (from: number, to: number): Message[] =>
    Array.from({ length: to - from }, (_, at) => {
      const number = from + at;
      const created_at = new Date(1_700_000_000_000 + number * 1000).toISOString();
      const parent_id = number === 0 ? null : `p${number - 1}`;
      return message({ id: `p${number}`, parent_id, turn_id: null, status: "complete", created_at });
    });
  const end = { seq: 7, messages: path(4, 6), conversation: conversation({ leaf_id: "p5" }) };
  const older = { messages: path(0, 4), turns: [], tool_calls: [] };
  const ids = (state: ConversationState) => state.messages.map((m) => m.id);

  it("grows at its beginning, and keeps that when its end is read anew", () => {
    let state = start(end);
    state = reduce(state, { type: "local.older", conversation_id: CONVERSATION, part: older });
    expect(ids(state)).toEqual(["p0", "p1", "p2", "p3", "p4", "p5"]);
    state = reduce(state, snapshot({ ...end, seq: 8 }));
    expect(ids(state)).toHaveLength(6);
  });

  it("shows a part far from its end, and goes on to the end once what is between has come", () => {
    const excerpt = (from: number, to: number) => ({
      type: "local.excerpt" as const,
      conversation_id: CONVERSATION,
      part: { messages: path(from, to), turns: [], tool_calls: [] },
    });
    const shown = (state: ConversationState) => state.excerptEnd;
    const far = start({ seq: 7, messages: path(40, 50), conversation: conversation({ leaf_id: "p49" }) });
    let state = reduce(far, excerpt(10, 20));
    expect(shown(state)).toBe("p19");
    // What is said meanwhile, and what is read anew, changes nothing of it.
    state = reduce(state, saved(8, { ...(path(50, 51)[0] as Message) }));
    state = reduce(
      state,
      snapshot({ seq: 9, messages: path(41, 51), conversation: conversation({ leaf_id: "p50" }) }),
    );
    expect(shown(state)).toBe("p19");
    state = reduce(state, excerpt(19, 39));
    expect(shown(state)).toBe("p38");
    expect(shown(reduce(state, excerpt(38, 45)))).toBe(null);
    // Whoever writes goes on at the end.
    const sent = reduce(state, { type: "local.sending", client_id: "c9", text: "on", sent_at: "" });
    expect(shown(sent)).toBe(null);
    expect(shown(reduce(state, { type: "local.excerpt", conversation_id: CONVERSATION, part: null }))).toBe(
      null,
    );
  });

  it("asks for the branch that was not read", () => {
    const outline = message({ id: "other", parent_id: "p4", turn_id: null, text: "", is_outline: true });
    const state = start({ ...end, messages: [...path(4, 6), outline] });
    const moved = reduce(state, {
      type: "conversation.changed",
      conversation_id: CONVERSATION,
      seq: 8,
      conversation: conversation({ leaf_id: "other" }),
    });
    expect(moved.stale).toBe(true);
  });

  it("never loses what is whole to an outline of it", () => {
    const state = start(end);
    const outline = { ...(end.messages[0] as Message), text: "", is_outline: true };
    const part = { ...older, messages: [outline] };
    const next = reduce(state, { type: "local.older", conversation_id: CONVERSATION, part });
    expect(next.messages.find((m) => m.id === "p4")?.is_outline).toBe(false);
  });
});
