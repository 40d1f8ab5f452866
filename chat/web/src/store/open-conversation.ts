/** The conversation that is open: its rows as the server tells them, and the parts of it that are shown. */
import { computed, signal } from "@preact/signals";
import { api, boot } from "../app/boot";
import { hearOfEvents, hearOfOpening, hearOfStop, isShutOut, socket } from "../app/connection";
import { hearOfPlace, place } from "../app/place";
import { messageOf } from "../app/toasts";
import { CommandError } from "../net/socket";
import { personal } from "../pages/forgetting";
import shell from "../texts/shell";
import type { ConversationEvent, Message, Older } from "../wire";
import { type ConversationState, emptyConversation, type LocalEvent, reduce } from "./conversation";
import { type Group, grouped } from "./groups";
import { keepInList } from "./list";
import { Outbox } from "./outbox";
import { inPieces, inPiecesBelow } from "./paths";
import { activeTurn, activeTurns, type TimelineItem, timeline, waitingCalls } from "./timeline";

/** Messages that the server has not confirmed, of all chats. */
export const outbox = new Outbox(`trellis.unsent.${boot.user.id}.${boot.workspace.slug}`, personal);

/** A conversation before its rows came, with what was not sent in it. */
const beginning = (id: string): ConversationState => ({ ...emptyConversation(id), outgoing: outbox.of(id) });

export const openState = signal(place.value ? beginning(place.value) : null);
/** Why the open conversation cannot be shown, in words. */
export const openProblem = signal<string | null>(null);
let drawn: readonly TimelineItem[] = [];
export const openTimeline = computed(() => {
  drawn = openState.value ? timeline(openState.value, drawn) : [];
  return drawn;
});
let drawnGroups: readonly Group[] = [];
export const openGroups = computed(() => {
  drawnGroups = grouped(openTimeline.value, drawnGroups);
  return drawnGroups;
});
/** Parts of the state that seldom change, for cards that would else be drawn anew with each token of an answer. */
export const openBud = {
  name: computed(() => openState.value?.conversation?.bud.name),
  avatar: computed(() => openState.value?.conversation?.bud.avatar),
};
/** The last message of the part that is shown, where it ends before the conversation does. */
export const openExcerpt = computed(() => openState.value?.excerptEnd ?? null);
export const openProgress = computed(() => openState.value?.progress ?? {});
export const openInputRequests = computed(() => openState.value?.inputRequests ?? []);
export const runningTurn = computed(() => (openState.value ? activeTurn(openState.value) : null));
/** All that are under way: of answers that stand side by side there may be several. */
export const runningTurns = computed(() => (openState.value ? activeTurns(openState.value) : []));
/** Nothing can be asked now: an answer is under way, or the server has turned the person away. */
export const isBusyOrShut = computed(() => runningTurn.value !== null || isShutOut.value);
export const waiting = computed(() => (openState.value ? waitingCalls(openState.value) : []));

let queue: ConversationEvent[] = [];
let isFlushPlanned = false;

/** Events are applied once per frame, so that a fast stream costs one drawing each time. */
function enqueue(event: ConversationEvent): void {
  queue.push(event);
  if (isFlushPlanned) return;
  isFlushPlanned = true;
  if (document.visibilityState === "visible") requestAnimationFrame(flush);
  else setTimeout(flush, 150);
}

function flush(): void {
  isFlushPlanned = false;
  const events = queue;
  queue = [];
  const before = openState.value;
  if (!before) return;
  let state = before;
  for (const event of events) state = reduce(state, event);
  openState.value = state;
  if (state.conversation && state.conversation !== before.conversation) keepInList(state.conversation);
  if (state.stale && !before.stale) heal(state.id);
  else if (!state.stale) healAttempts = 0;
}

let healAttempts = 0;

function heal(id: string): void {
  const delay = healAttempts === 0 ? 0 : Math.min(200 * 2 ** healAttempts, 5000);
  healAttempts += 1;
  setTimeout(() => {
    if (openState.value?.id === id && openState.value.stale) void subscribe(id);
  }, delay);
}

async function subscribe(id: string): Promise<void> {
  const state = openState.value;
  if (!socket.isOpen || state?.id !== id) return; // onOpen comes back here
  const isKnown = state.seq !== null && !state.stale;
  try {
    await socket.ask({ type: "subscribe", conversation_id: id, ...(isKnown && { seq: state.seq ?? 0 }) });
    if (place.value === id) openProblem.value = null;
  } catch (error) {
    if (!(error instanceof CommandError) || place.value !== id) return;
    // "conflict": the page has gone to another chat and come back before this one was read.
    if (["offline", "timeout", "conflict"].includes(error.code)) return;
    openProblem.value = error.code === "not_found" ? shell.noAccess : error.message;
  }
}

/** Ask once more for the open conversation, which could not be shown. */
export async function openAgain(): Promise<void> {
  if (place.value) await subscribe(place.value);
}

export function local(event: LocalEvent): void {
  if (openState.value) openState.value = reduce(openState.value, event);
}

/** Show the part of the conversation that begins with a message; false where that is on another branch. */
export async function showFrom(conversation_id: string, message_id: string): Promise<boolean> {
  const part = await api.newer(message_id);
  if (part.messages.length === 0) return false;
  local({ type: "local.excerpt", conversation_id, part });
  return true;
}

/** Show the end of the open conversation again. */
export function showEnd(): void {
  const conversation_id = place.value;
  if (conversation_id && openState.value?.excerptEnd)
    local({ type: "local.excerpt", conversation_id, part: null });
}

/** Load what follows the last message of an excerpt, a few at a time; gives why it could not. */
export async function loadNewerGently(conversation_id: string, last: string): Promise<string> {
  try {
    const part = await api.newer(last);
    if (part.messages.length === 0) showEnd();
    let end: string | null = last;
    for (const messages of inPiecesBelow(part.messages)) {
      await nextFrame();
      // Meanwhile the reader may have gone elsewhere.
      if (openState.value?.excerptEnd !== end) break;
      local({ type: "local.excerpt", conversation_id, part: { ...part, messages } });
      end = openState.value.excerptEnd;
    }
    return "";
  } catch (error) {
    return messageOf(error);
  }
}

/**
 * Load what is above a message, a few messages at a time, one frame each; gives why it could not.
 *
 * @param onPiece called before each of them is shown.
 */
export async function loadOlderGently(first: Message, onPiece: () => void): Promise<string> {
  try {
    const part = await api.older(first.id);
    for (const messages of inPieces(part.messages, first.parent_id)) {
      await nextFrame();
      onPiece();
      addOlder(first, { ...part, messages });
    }
    return "";
  } catch (error) {
    return messageOf(error);
  }
}

function addOlder({ conversation_id }: Message, part: Older): void {
  local({ type: "local.older", conversation_id, part });
}

/** Resolves before the next drawing, or soon where nothing is drawn since the page is in the background. */
const nextFrame = (): Promise<void> =>
  new Promise((resolve) => {
    if (document.visibilityState === "visible") requestAnimationFrame(() => resolve());
    else setTimeout(resolve);
  });

hearOfEvents(enqueue);
hearOfOpening(() => void openAgain());
hearOfStop((isOver) => local({ type: "local.stopped", isOver }));
hearOfPlace((next, previous) => {
  openState.value = next ? beginning(next) : null;
  openProblem.value = null;
  if (previous) socket.tell({ type: "unsubscribe", conversation_id: previous });
  if (next) void subscribe(next);
});
