/**
 * One conversation as the browser knows it: a pure reducer over the server's events.
 *
 * Rows are upserted by id in the order of their sequence numbers. Whatever does not fit (a missing number, a
 * piece of text beyond the known end) sets `stale`; whoever drives the reducer then subscribes again, and the
 * snapshot that follows replaces everything.
 */

import {
  type Artifact,
  CALL_IS_ACTIVE,
  type ChosenModel,
  type Conversation,
  type ConversationEvent,
  type InputRequest,
  type Message,
  type Older,
  type QueuedMessage,
  type ReasoningDelta,
  type RowEvent,
  type Snapshot,
  type TextDelta,
  type ToolCall,
  TURN_IS_ACTIVE,
  type Turn,
} from "../wire";
import type { Picked } from "./attachments";
import { isPart, isUnread, pathTo } from "./paths";

export interface Progress {
  progress: number;
  total: number | null;
  message: string | null;
}

/** Who answers a message in place of the conversation's bud and model. */
export interface Asked {
  bud_id: string | null;
  /** The models that answer side by side; none: one answers. */
  compare: readonly ChosenModel[];
}

/** A message the person has sent and the server has not shown back yet. */
export interface Outgoing extends Asked {
  client_id: string;
  text: string;
  sent_at: string;
  attachments: readonly Picked[];
  error: string | null;
}

export interface ConversationState {
  id: string;
  /** Number of the last row event that is in here; null before the first snapshot. */
  seq: number | null;
  stale: boolean;
  conversation: Conversation | null;
  /** The message that the shown part ends with, where a link led far away from the path's end. */
  excerptEnd: string | null;
  messages: readonly Message[];
  turns: readonly Turn[];
  toolCalls: readonly ToolCall[];
  inputRequests: readonly InputRequest[];
  queue: readonly QueuedMessage[];
  artifacts: readonly Artifact[];
  progress: Readonly<Record<string, Progress>>;
  outgoing: readonly Outgoing[];
}

export type LocalEvent =
  | {
      type: "local.sending";
      client_id: string;
      text: string;
      sent_at: string;
      attachments?: readonly Picked[];
      bud_id?: string | null;
      compare?: readonly ChosenModel[];
    }
  | { type: "local.send_failed"; client_id: string; error: string }
  | { type: "local.resending"; client_id: string }
  | { type: "local.discard"; client_id: string }
  /** What ran has been stopped, and if it is over, also what waited for the person. Nobody tells of it. */
  | { type: "local.stopped"; isOver: boolean }
  | { type: "local.older"; conversation_id: string; part: Older }
  /** Show the part of the path that ends with these messages; null: its end again. */
  | { type: "local.excerpt"; conversation_id: string; part: Older | null };

export function emptyConversation(id: string): ConversationState {
  return {
    id,
    seq: null,
    stale: false,
    conversation: null,
    excerptEnd: null,
    messages: [],
    turns: [],
    toolCalls: [],
    inputRequests: [],
    queue: [],
    artifacts: [],
    progress: {},
    outgoing: [],
  };
}

export function reduce(state: ConversationState, event: ConversationEvent | LocalEvent): ConversationState {
  if ("conversation_id" in event && event.conversation_id !== state.id) return state;
  switch (event.type) {
    case "snapshot":
      return applySnapshot(state, event);
    case "current":
      return state.seq === event.seq ? (state.stale ? { ...state, stale: false } : state) : gap(state);
    case "message.saved":
    case "turn.changed":
    case "tool_call.changed":
    case "conversation.changed":
    case "input_request.changed":
    case "queue.changed":
    case "artifact.changed":
      return applyRow(state, event);
    case "text.delta":
    case "reasoning.delta":
      return applyDelta(state, event);
    case "tool_call.progress": {
      const { progress, total, message } = event;
      return {
        ...state,
        progress: { ...state.progress, [event.tool_call_id]: { progress, total, message } },
      };
    }
    case "local.sending": {
      if (state.outgoing.some((o) => o.client_id === event.client_id)) return state;
      const { client_id, text, sent_at, attachments = [], bud_id = null, compare = [] } = event;
      const outgoing = { client_id, text, sent_at, attachments, bud_id, compare, error: null };
      return { ...state, excerptEnd: null, outgoing: [...state.outgoing, outgoing] };
    }
    case "local.send_failed":
      return editOutgoing(state, event.client_id, event.error);
    case "local.resending":
      return editOutgoing(state, event.client_id, null);
    case "local.discard":
      return { ...state, outgoing: state.outgoing.filter((o) => o.client_id !== event.client_id) };
    case "local.stopped":
      return stopped(state, event.isOver);
    case "local.older":
      return withPart(state, event.part.messages, event.part.turns, event.part.tool_calls);
    case "local.excerpt": {
      if (event.part === null) return { ...state, excerptEnd: null };
      const { messages, turns, tool_calls } = event.part;
      const excerptEnd = messages.findLast((one) => !one.is_outline)?.id ?? null;
      return withoutGap({ ...withPart(state, messages, turns, tool_calls), excerptEnd });
    }
  }
}

function stopped(state: ConversationState, isOver: boolean): ConversationState {
  const goesOn = (status: string) => !isOver && status.startsWith("waiting_for_");
  const turns = state.turns.map((turn) =>
    TURN_IS_ACTIVE.has(turn.status) && !goesOn(turn.status)
      ? { ...turn, status: "cancelled" as const }
      : turn,
  );
  const ended = new Set(turns.filter((turn) => turn.status === "cancelled").map((turn) => turn.id));
  const toolCalls = state.toolCalls.map((call) =>
    CALL_IS_ACTIVE.has(call.status) && ended.has(call.turn_id)
      ? { ...call, status: "cancelled" as const }
      : call,
  );
  // Whoever may enter again gets everything as it is then.
  return { ...state, stale: true, turns, toolCalls, inputRequests: isOver ? [] : state.inputRequests };
}

/** What has been read down to the end of the path is no excerpt any more; nor is one that has gone. */
function withoutGap(state: ConversationState): ConversationState {
  const { excerptEnd, messages, conversation } = state;
  if (excerptEnd === null) return state;
  const isKnown = messages.some((one) => one.id === excerptEnd);
  const meets = pathTo(messages, conversation?.leaf_id ?? null).some((one) => one.id === excerptEnd);
  return isKnown && !meets ? state : { ...state, excerptEnd: null };
}

function gap(state: ConversationState): ConversationState {
  return state.stale ? state : { ...state, stale: true };
}

function editOutgoing(state: ConversationState, clientId: string, error: string | null): ConversationState {
  return {
    ...state,
    outgoing: state.outgoing.map((o) => (o.client_id === clientId ? { ...o, error } : o)),
  };
}

function applySnapshot(state: ConversationState, event: Snapshot): ConversationState {
  // A snapshot that was read before events we already have; a newer picture is worth more, unless ours is broken.
  if (!state.stale && state.seq !== null && event.seq < state.seq) return state;
  const known = new Set([...event.messages, ...event.queue].map((m) => m.client_id));
  // What was loaded of a long conversation before stays: the snapshot holds only its end.
  const base = isPart(event.messages) ? state : { ...state, messages: [], turns: [], toolCalls: [] };
  return withoutGap({
    ...withPart(base, event.messages, event.turns, event.tool_calls),
    seq: event.seq,
    stale: false,
    conversation: event.conversation,
    inputRequests: [...event.input_requests].sort(byId),
    queue: event.queue,
    artifacts: [...event.artifacts].sort(byId),
    outgoing: state.outgoing.filter((o) => !known.has(o.client_id)),
  });
}

/** The rows with others that are newer, or were not known. An outline never takes the place of a whole message. */
function withPart(
  state: ConversationState,
  messages: readonly Message[],
  turns: readonly Turn[],
  toolCalls: readonly ToolCall[],
): ConversationState {
  const whole = new Set(state.messages.filter((m) => !m.is_outline).map((m) => m.id));
  const taken = messages.filter((m) => !(m.is_outline && whole.has(m.id)));
  return {
    ...state,
    messages: united(state.messages, taken).sort(byMessageOrder),
    turns: united(state.turns, turns).sort(byCreation),
    toolCalls: united(state.toolCalls, toolCalls).sort(byPosition),
  };
}

function united<Row extends { id: string }>(rows: readonly Row[], others: readonly Row[]): Row[] {
  const byId = new Map(rows.map((row) => [row.id, row]));
  for (const row of others) byId.set(row.id, row);
  return [...byId.values()];
}

function applyRow(state: ConversationState, event: RowEvent): ConversationState {
  if (state.seq === null || state.stale) return state; // the snapshot on its way holds it
  if (event.seq <= state.seq) return state;
  if (event.seq !== state.seq + 1) return gap(state);
  const next = { ...state, seq: event.seq };
  switch (event.type) {
    case "message.saved":
      next.messages = upsert(state.messages, event.message, byMessageOrder);
      next.conversation = grown(state, event.message);
      if (event.message.client_id !== null) {
        next.outgoing = state.outgoing.filter((o) => o.client_id !== event.message.client_id);
      }
      return next;
    case "turn.changed":
      next.turns = upsert(state.turns, event.turn, byCreation);
      return next;
    case "tool_call.changed":
      next.toolCalls = upsert(state.toolCalls, event.tool_call, byPosition);
      if (!CALL_IS_ACTIVE.has(event.tool_call.status) && event.tool_call.id in state.progress) {
        const { [event.tool_call.id]: _, ...rest } = state.progress;
        next.progress = rest;
      }
      return next;
    case "input_request.changed":
      next.inputRequests = upsert(state.inputRequests, event.input_request, byId);
      return next;
    case "queue.changed": {
      const waiting = new Set(event.queue.map((m) => m.client_id));
      next.queue = event.queue;
      next.outgoing = state.outgoing.filter((o) => !waiting.has(o.client_id));
      return next;
    }
    case "artifact.changed":
      next.artifacts = event.artifact.is_deleted
        ? state.artifacts.filter((artifact) => artifact.id !== event.artifact.id)
        : upsert(state.artifacts, event.artifact, byId);
      return next;
    case "conversation.changed":
      next.conversation = event.conversation;
      // Another branch of a long conversation, which has not been read yet: the snapshot that follows has it.
      return isUnread(next.messages, event.conversation.leaf_id) ? gap({ ...next, excerptEnd: null }) : next;
  }
}

/** A new message below the end of the shown path is the path's new end. */
function grown(state: ConversationState, message: Message): Conversation | null {
  const { conversation } = state;
  if (!conversation || message.parent_id !== conversation.leaf_id) return conversation;
  if (state.messages.some((m) => m.id === message.id)) return conversation;
  return { ...conversation, leaf_id: message.id };
}

function applyDelta(state: ConversationState, event: TextDelta | ReasoningDelta): ConversationState {
  if (state.seq === null || state.stale) return state;
  const at = state.messages.findIndex((m) => m.id === event.message_id);
  const message = state.messages[at];
  if (!message) return gap(state);
  if (message.status !== "streaming") return state; // a late piece of a text that is whole already
  const field = event.type === "text.delta" ? "text" : "reasoning";
  const known = message[field].length;
  if (event.offset > known) return gap(state);
  const fresh = event.text.slice(known - event.offset);
  if (fresh === "") return state;
  const messages = state.messages.slice();
  messages[at] = { ...message, [field]: message[field] + fresh };
  return { ...state, messages };
}

function upsert<Row extends { id: string }>(
  rows: readonly Row[],
  row: Row,
  order: (a: Row, b: Row) => number,
): readonly Row[] {
  const at = rows.findIndex((r) => r.id === row.id);
  if (at >= 0) {
    const copy = rows.slice();
    copy[at] = row;
    return copy;
  }
  return [...rows, row].sort(order);
}

/** In time. Of two equally long texts the server's order is that of their letters, which is cheaper by far to see. */
function byMoment({ created_at: a }: { created_at: string }, { created_at: b }: { created_at: string }) {
  if (a.length === b.length) return a < b ? -1 : a > b ? 1 : 0;
  return moment(a) - moment(b);
}

function moment(iso: string): number {
  return Date.parse(iso) || 0;
}

function byId(a: { id: string }, b: { id: string }): number {
  return a.id < b.id ? -1 : a.id > b.id ? 1 : 0;
}

function byCreation(a: Turn, b: Turn): number {
  return byMoment(a, b) || byId(a, b);
}

/** Within one turn the question comes first, then the steps; turns follow each other in time. */
function byMessageOrder(a: Message, b: Message): number {
  if (a.turn_id !== null && a.turn_id === b.turn_id) {
    if (a.role !== b.role) return a.role === "user" ? -1 : 1;
    if (a.step !== b.step) return a.step - b.step;
  }
  return byMoment(a, b) || byId(a, b);
}

function byPosition(a: ToolCall, b: ToolCall): number {
  return a.position - b.position || byId(a, b);
}
