/** What the message list draws, derived from rows alone: text never decides what looks like a card. */
import { CALL_IS_ACTIVE, type Message, type ToolCall, TURN_IS_ACTIVE, type Turn } from "../wire";
import type { ConversationState, Outgoing } from "./conversation";
import { pathTo, placeOf, placesWithChoice } from "./paths";

type Segment =
  /** `earlier`: messages that it goes on from, where an answer was cut off. */
  | { kind: "text"; key: string; message: Message; earlier?: string[] }
  | { kind: "calls"; key: string; calls: ToolCall[] };

export interface AnswerItem {
  kind: "answer";
  key: string;
  turn: Turn | null;
  /** Its first message, which says which branch this is, and its last. */
  first: Message | undefined;
  last: Message | undefined;
  segments: Segment[];
  /** The ids of the messages that stand in the place of its first one, on branches; none, where it is the only one. */
  versions: readonly string[];
  isThinking: boolean;
  isLast: boolean;
  /** Whether the answer after it has the same notice, which is enough to read once. */
  isNoticeRepeated: boolean;
}

/** Answers to one question that stand side by side until one is chosen. */
export interface ComparisonItem {
  kind: "comparison";
  key: string;
  answers: AnswerItem[];
  /** The one that the conversation goes on from if the person writes on without choosing. */
  kept: AnswerItem | undefined;
}

interface UserItem {
  kind: "user";
  key: string;
  message: Message;
  versions: readonly string[];
  /** The message above it, where older ones are summarised up to there. */
  summarised: Message | undefined;
}

export type TimelineItem =
  | UserItem
  | AnswerItem
  | ComparisonItem
  | { kind: "outgoing"; key: string; outgoing: Outgoing };

/** Those that are under way: one, or those whose answers are compared. */
export function activeTurns(state: ConversationState): Turn[] {
  return state.turns.filter((turn) => TURN_IS_ACTIVE.has(turn.status));
}

export function activeTurn(state: ConversationState): Turn | null {
  return activeTurns(state).at(-1) ?? null;
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

/**
 * The items of the list, in their order.
 *
 * @param before those of the moment before: an item of which nothing changed is the same object again, so that
 * whoever draws a long conversation can leave it as it is.
 */
export function timeline(
  state: ConversationState,
  before: readonly TimelineItem[] = [],
): readonly TimelineItem[] {
  const known = new Map(before.map((item) => [item.key, item]));
  return itemsOf(state).map((item) => {
    const old = known.get(item.key);
    return old && isSame(old, item) ? old : item;
  });
}

/** Whether two items show the same. Rows are replaced when they change, never changed in place. */
function isSame(one: TimelineItem, other: TimelineItem): boolean {
  if (one.kind === "user" && other.kind === "user")
    return (
      one.message === other.message &&
      one.summarised === other.summarised &&
      isEqual(one.versions, other.versions)
    );
  return (
    one.kind === "answer" &&
    other.kind === "answer" &&
    one.turn === other.turn &&
    one.first === other.first &&
    one.last === other.last &&
    one.isThinking === other.isThinking &&
    one.isLast === other.isLast &&
    one.isNoticeRepeated === other.isNoticeRepeated &&
    isEqual(one.versions, other.versions) &&
    one.segments.length === other.segments.length &&
    one.segments.every((segment, at) => isSameSegment(segment, other.segments[at]))
  );
}

function isSameSegment(one: Segment, other: Segment | undefined): boolean {
  if (one.kind === "text") return other?.kind === "text" && one.message === other.message;
  return other?.kind === "calls" && isEqual(one.calls, other.calls);
}

const isEqual = (one: readonly unknown[], other: readonly unknown[]): boolean =>
  one.length === other.length && one.every((value, at) => value === other[at]);

function itemsOf(state: ConversationState): TimelineItem[] {
  const calls = Map.groupBy(state.toolCalls, (call) => call.message_id);
  const turns = new Map(state.turns.map((turn) => [turn.id, turn]));
  const items: TimelineItem[] = [];
  const choices = placesWithChoice(state.messages);
  const versionsOf = (message: Message) => choices.get(placeOf(message)) ?? [];

  const answer = (turnId: string | null, key: string) => {
    const last = items.at(-1);
    if (last?.kind === "answer" && (last.turn?.id ?? null) === turnId && turnId !== null) return last;
    const item = emptyAnswer(key, (turnId && turns.get(turnId)) || null);
    items.push(item);
    return item;
  };

  const path = shownPath(state);
  const isExcerpt = state.excerptEnd !== null;
  const compared = comparedTurns(state);
  for (const [place, message] of path.entries()) {
    if (message.role === "user") {
      const above = path[place - 1];
      const summarised = above?.summary ? above : undefined;
      items.push({ kind: "user", key: message.id, message, versions: versionsOf(message), summarised });
      if (message.id === compared[0]?.user_message_id) {
        const answers = compared.map((turn) => wholeAnswer(turn, state.messages, calls));
        const leaf = path.at(-1);
        const kept = answers.find((one) => one.turn?.id === leaf?.turn_id && leaf?.role === "assistant");
        items.push({ kind: "comparison", key: `compared-${message.id}`, answers, kept });
        break;
      }
      // A turn that has only begun, or failed at once, has no message yet; its state still has a place to show.
      if (path[place + 1]?.role !== "assistant" && !(isExcerpt && place === path.length - 1)) {
        const turn = state.turns.findLast((t) => t.user_message_id === message.id);
        if (turn) answer(turn.id, `turn-${turn.id}`);
      }
      continue;
    }
    const item = answer(message.turn_id, message.turn_id ? `turn-${message.turn_id}` : message.id);
    if (!item.first) item.versions = versionsOf(message);
    add(item, message, calls);
  }

  const answers = items.filter((item) => item.kind === "answer");
  for (const [place, item] of answers.entries()) {
    item.isThinking = thinks(item);
    item.isNoticeRepeated = isSameNotice(item.turn?.notice, answers[place + 1]?.turn?.notice);
  }
  if (isExcerpt) return items;
  for (const outgoing of state.outgoing) items.push({ kind: "outgoing", key: outgoing.client_id, outgoing });
  const last = items.findLast((item) => item.kind === "answer");
  if (last?.kind === "answer") last.isLast = last === items.at(-1);
  return items;
}

/** Whether two notices say the same, whatever they count: how much is left out of a long chat grows with each answer. */
function isSameNotice(one: string | null | undefined, next: string | null | undefined): boolean {
  const uncounted = (notice: string) => notice.replace(/\p{Nd}[\p{Nd}.,]*/gu, "#");
  return Boolean(one && next) && uncounted(one ?? "") === uncounted(next ?? "");
}

/** The messages that are shown, from the first one that is known. */
function shownPath({ messages, excerptEnd, conversation }: ConversationState): readonly Message[] {
  return pathTo(messages, excerptEnd ?? conversation?.leaf_id ?? null);
}

/** Whether a message can be seen: on the shown path, or in an answer beside the one there. */
export function isShown(state: ConversationState, messageId: string): boolean {
  const beside = new Set(comparedTurns(state).map((turn) => turn.id));
  const message = state.messages.find((one) => one.id === messageId);
  return shownPath(state).some((one) => one.id === messageId) || beside.has(message?.turn_id ?? "");
}

/** The turns whose answers stand side by side, in their order; none, where nothing is compared. */
function comparedTurns(state: ConversationState): Turn[] {
  const id = state.conversation?.comparison_id ?? null;
  const turns = id === null ? [] : state.turns.filter((turn) => turn.comparison_id === id);
  return turns.sort((a, b) => a.place - b.place);
}

function emptyAnswer(key: string, turn: Turn | null): AnswerItem {
  return {
    kind: "answer",
    key,
    turn,
    first: undefined,
    last: undefined,
    segments: [],
    versions: [],
    isThinking: false,
    isLast: false,
    isNoticeRepeated: false,
  };
}

type CallsOf = ReadonlyMap<string, ToolCall[]>;

/** An answer beside others: whatever its turn has said, on its own branch. */
function wholeAnswer(turn: Turn, messages: readonly Message[], calls: CallsOf): AnswerItem {
  const item = emptyAnswer(`turn-${turn.id}`, turn);
  for (const message of messages) {
    if (message.turn_id === turn.id && message.role === "assistant") add(item, message, calls);
  }
  item.isThinking = thinks(item);
  item.isLast = true;
  return item;
}

/** The first message that these items show. */
export function firstMessage([item]: readonly TimelineItem[]): Message | undefined {
  if (item?.kind === "user") return item.message;
  return item?.kind === "answer" ? item.first : undefined;
}

/** What the next message of an answer adds to it. */
function add(item: AnswerItem, message: Message, calls: CallsOf): void {
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
  if (!own) return;
  const previous = item.segments.at(-1);
  if (previous?.kind === "calls") previous.calls.push(...own);
  else item.segments.push({ kind: "calls", key: `calls-${message.id}`, calls: [...own] });
}

/** Whether a model is at work and there is nothing to see of it. */
function thinks({ turn, segments }: AnswerItem): boolean {
  if (turn?.status !== "queued" && turn?.status !== "running") return false;
  const end = segments.at(-1);
  if (end?.kind === "text") return end.message.status !== "streaming";
  return !end?.calls.some((call) => CALL_IS_ACTIVE.has(call.status));
}
