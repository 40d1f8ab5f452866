/** What the message list draws, derived from rows alone: text never decides what looks like a card. */
import { CALL_IS_ACTIVE, type Message, type ToolCall, TURN_IS_ACTIVE, type Turn } from "../wire";
import type { ConversationState, Outgoing } from "./conversation";
import { pathTo } from "./paths";

export type Segment =
  /** `earlier`: messages that it goes on from, where an answer was cut off. */
  | { kind: "text"; key: string; message: Message; earlier?: string[] }
  | { kind: "calls"; key: string; calls: ToolCall[] };

export type TimelineItem =
  | { kind: "user"; key: string; message: Message }
  | {
      kind: "answer";
      key: string;
      turn: Turn | null;
      /** Its first message, which says which branch this is, and its last. */
      first: Message | undefined;
      last: Message | undefined;
      segments: Segment[];
      isThinking: boolean;
      isLast: boolean;
    }
  | { kind: "outgoing"; key: string; outgoing: Outgoing };

export function activeTurn(state: ConversationState): Turn | null {
  return state.turns.findLast((turn) => TURN_IS_ACTIVE.has(turn.status)) ?? null;
}

/** Calls that a person has to say something about before the turn goes on. */
export function waitingCalls(state: ConversationState): ToolCall[] {
  const isActive = new Set(state.turns.filter((t) => TURN_IS_ACTIVE.has(t.status)).map((t) => t.id));
  return state.toolCalls.filter(
    (call) =>
      call.status === "waiting_for_approval" ||
      call.status === "waiting_for_input" ||
      (call.status === "outcome_unknown" && isActive.has(call.turn_id)),
  );
}

export function timeline(state: ConversationState): TimelineItem[] {
  const calls = Map.groupBy(state.toolCalls, (call) => call.message_id);
  const turns = new Map(state.turns.map((turn) => [turn.id, turn]));
  const items: TimelineItem[] = [];
  const shownTurns = new Set<string>();

  const answer = (turnId: string | null, key: string) => {
    const last = items.at(-1);
    if (last?.kind === "answer" && (last.turn?.id ?? null) === turnId && turnId !== null) return last;
    const item: TimelineItem & { kind: "answer" } = {
      kind: "answer",
      key,
      turn: (turnId && turns.get(turnId)) || null,
      first: undefined,
      last: undefined,
      segments: [],
      isThinking: false,
      isLast: false,
    };
    items.push(item);
    if (turnId) shownTurns.add(turnId);
    return item;
  };

  const path = pathTo(state.messages, state.conversation?.leaf_id ?? null);
  for (const [place, message] of path.entries()) {
    if (message.role === "user") {
      items.push({ kind: "user", key: message.id, message });
      // A turn that has only begun, or failed at once, has no message yet; its state still has a place to show.
      if (path[place + 1]?.role !== "assistant") {
        const turn = state.turns.findLast((t) => t.user_message_id === message.id);
        if (turn) answer(turn.id, `turn-${turn.id}`);
      }
      continue;
    }
    const item = answer(message.turn_id, message.turn_id ? `turn-${message.turn_id}` : message.id);
    const before = item.last;
    const cut = item.segments.at(-1);
    item.first ??= message;
    item.last = message;
    if (before?.is_cut && cut?.kind === "text" && before.turn_id === message.turn_id) {
      const text = cut.message.text + message.text;
      const reasoning = [cut.message.reasoning, message.reasoning].filter(Boolean).join("\n\n");
      const earlier = [...(cut.earlier ?? []), before.id];
      item.segments[item.segments.length - 1] = { ...cut, message: { ...message, text, reasoning }, earlier };
    } else if (message.text.trim() !== "" || message.reasoning !== "")
      item.segments.push({ kind: "text", key: message.id, message });
    const own = calls.get(message.id);
    if (own) {
      const previous = item.segments.at(-1);
      if (previous?.kind === "calls") previous.calls.push(...own);
      else item.segments.push({ kind: "calls", key: `calls-${message.id}`, calls: [...own] });
    }
  }

  for (const item of items) {
    if (item.kind !== "answer" || !item.turn) continue;
    const busy = item.turn.status === "queued" || item.turn.status === "running";
    const end = item.segments.at(-1);
    const streams = end?.kind === "text" && end.message.status === "streaming";
    const callRuns = end?.kind === "calls" && end.calls.some((call) => CALL_IS_ACTIVE.has(call.status));
    item.isThinking = busy && !streams && !callRuns;
  }
  for (const outgoing of state.outgoing) items.push({ kind: "outgoing", key: outgoing.client_id, outgoing });
  const last = items.findLast((item) => item.kind === "answer");
  if (last?.kind === "answer") last.isLast = last === items.at(-1);
  return items;
}
