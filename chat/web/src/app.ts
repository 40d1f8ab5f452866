/** The lists, the open conversation and the connection: components read signals from here and call these functions. */
import { batch, computed, signal } from "@preact/signals";
import { api, boot } from "./boot";
import { changedResources } from "./chat/picked";
import { forgetOthers, hearOfAnother, isAnothers, personal } from "./forgetting";
import { keepShell } from "./installing";
import { ApiProblem } from "./net/api";
import type { PageEvent } from "./net/events";
import { CommandError, LiveSocket, type SocketStatus } from "./net/socket";
import { loadNotices, placeNotices } from "./notices";
import { type ConversationState, emptyConversation, type LocalEvent, reduce } from "./store/conversation";
import { type Group, grouped } from "./store/groups";
import { Outbox } from "./store/outbox";
import { inPieces, inPiecesBelow } from "./store/paths";
import { activeTurn, activeTurns, type TimelineItem, timeline, waitingCalls } from "./store/timeline";
import shell from "./texts/shell";
import { dropAbsence, dropActionsAbout, messageAlone, messageOf, toast, UNDO_MS } from "./toasts";
import type { Bud, Conversation, ConversationEvent, Message, Older } from "./wire";

// -- where we are ------------------------------------------------------------------------------------------------

const home = `/w/${boot.workspace.slug}/`;
export const homePath = home;
export const conversationPath = (id: string): string => `${home}c/${id}/`;
/** The whole chat, for paper. */
export const printPath = (id: string): string => `${conversationPath(id)}print/`;

function readPlace(): string | null {
  const match = /\/c\/([0-9a-f-]{36})\/?$/.exec(location.pathname);
  return match?.[1] ?? null;
}

/** The open conversation's id; null is the workspace's home. */
export const place = signal<string | null>(readPlace());
export const isSidebarOpen = signal(false);

/** The message that the address names, as links in mails do; read once, so that a reload stays where one is. */
function takeMessage(): string | null {
  const id = /^#message-([0-9a-f-]{36})$/.exec(location.hash)?.[1] ?? null;
  if (id) history.replaceState(null, "", location.pathname);
  return id;
}

export function go(path: string, { replace = false } = {}): void {
  if (path !== location.pathname) {
    if (replace) history.replaceState(null, "", path);
    else history.pushState(null, "", path);
  }
  arrive();
}

function arrive(): void {
  const next = readPlace();
  const message = takeMessage();
  isSidebarOpen.value = false;
  if (message) reveal(message);
  if (next === place.value) return;
  const previous = place.value;
  batch(() => {
    place.value = next;
    openState.value = next ? beginning(next) : null;
    openProblem.value = null;
  });
  if (previous) socket.tell({ type: "unsubscribe", conversation_id: previous });
  if (next) void subscribe(next);
}

// -- lists -------------------------------------------------------------------------------------------------------

export const buds = signal<Bud[] | null>(null);
export const budsProblem = signal<string | null>(null);
export const list = signal<Conversation[] | null>(null);
export const listProblem = signal<string | null>(null);
export const listNext = signal<string | null>(null);
export const showsArchived = signal(false);
/** The folder whose chats are listed; null: all. */
export const openFolder = signal<string | null>(null);

export async function loadBuds(): Promise<void> {
  try {
    const rows = await api.buds();
    batch(() => {
      buds.value = rows.filter((bud) => !bud.is_archived);
      budsProblem.value = null;
    });
  } catch (error) {
    budsProblem.value = messageOf(error);
  }
}

let listRequest = 0;

export async function loadList(): Promise<void> {
  listRequest += 1;
  const mine = listRequest;
  try {
    const page = await api.conversations({ archived: showsArchived.value, folder: openFolder.value });
    if (mine !== listRequest) return;
    batch(() => {
      list.value = page.results;
      listNext.value = page.next;
      listProblem.value = null;
    });
  } catch (error) {
    if (mine === listRequest) listProblem.value = messageOf(error);
  }
}

export async function loadMore(): Promise<void> {
  if (!listNext.value) return;
  const mine = listRequest;
  try {
    const page = await api.conversations({ page: listNext.value });
    if (mine !== listRequest) return; // another list is shown by now
    batch(() => {
      const known = new Set(list.value?.map((row) => row.id));
      list.value = [...(list.value ?? []), ...page.results.filter((row) => !known.has(row.id))];
      listNext.value = page.next;
    });
  } catch (error) {
    toast(messageOf(error), "bad");
  }
}

export function setShowsArchived(value: boolean): void {
  batch(() => {
    showsArchived.value = value;
    openFolder.value = null;
    list.value = null;
  });
  void loadList();
}

export function setOpenFolder(id: string | null): void {
  batch(() => {
    openFolder.value = id;
    showsArchived.value = false;
    list.value = null;
  });
  void loadList();
}

type HearRow = (now: Conversation, before: Conversation | undefined) => void;
const onRow = new Set<HearRow>();

/** Hear of each conversation that changes, with its row from before. */
export function hearOfRows(hear: HearRow): void {
  onRow.add(hear);
}

/** Tell who hears of rows, before the list changes: what they know of this one is out of date. */
function tellOfRow(row: Conversation): void {
  const before = list.value?.find((other) => other.id === row.id);
  onRow.forEach((hear) => hear(row, before));
}

/** Put one row into the list as it is now, or take it out where it no longer belongs. */
export function placeInList(row: Conversation): void {
  if (!list.value) return;
  const others = list.value.filter((other) => other.id !== row.id);
  tellOfRow(row);
  const isListed =
    !row.is_temporary &&
    row.is_archived === showsArchived.value &&
    (!openFolder.value || row.folder_id === openFolder.value);
  list.value = isListed ? [row, ...others] : others;
}

/** Chats that this page is deleting: it tells so itself, and need not hear of it. */
const deleting = new Set<string>();

export async function whileDeleting<T>(ids: readonly string[], work: () => Promise<T>): Promise<T> {
  for (const id of ids) deleting.add(id);
  try {
    return await work();
  } finally {
    for (const id of ids) deleting.delete(id);
  }
}

export async function refreshConversation(id: string): Promise<void> {
  if (deleting.has(id)) return;
  try {
    placeInList(await api.conversation(id));
    if (place.value === id && openProblem.value) void openAgain(); // it was restored elsewhere
  } catch (error) {
    if (!(error instanceof ApiProblem) || error.status !== 404) return;
    const wasHere = place.value === id;
    const wasTemporary = openState.value?.id === id && openState.value.conversation?.is_temporary;
    forget(id);
    if (!wasHere) return;
    if (wasTemporary) {
      toast(shell.temporaryGone, "bad");
      return;
    }
    const undo = { label: shell.undo, run: () => void restoreConversation(id, true), about: [id] };
    toast(shell.deletedElsewhere, "bad", boot.deleted_days > 0 ? undo : null, UNDO_MS);
  }
}

export function forget(id: string): void {
  if (list.value) list.value = list.value.filter((row) => row.id !== id);
  if (place.value === id) go(home, { replace: true });
}

export async function changeConversation(
  id: string,
  change: Partial<Pick<Conversation, "title" | "is_pinned" | "is_archived" | "folder_id">>,
): Promise<boolean> {
  try {
    placeInList(await api.changeConversation(id, change));
    if (change.is_archived !== undefined) {
      const is_archived = !change.is_archived;
      const undo = {
        label: shell.undo,
        run: () => void changeConversation(id, { is_archived }),
        about: [id],
      };
      toast(change.is_archived ? shell.archived : shell.unarchived, "ok", undo, UNDO_MS);
    }
    return true;
  } catch (error) {
    toast(messageAlone(error), "bad");
    return false;
  }
}

export async function deleteConversation({ id, is_temporary }: Conversation): Promise<void> {
  try {
    const wasHere = place.value === id;
    await whileDeleting([id], () => api.deleteConversation(id));
    forget(id);
    dropActionsAbout([id]);
    const undo = { label: shell.undo, run: () => void restoreConversation(id, wasHere), about: [id] };
    if (boot.deleted_days > 0 && !is_temporary) toast(shell.deleted, "ok", undo, UNDO_MS);
    else toast(shell.erased, "ok");
  } catch (error) {
    toast(messageOf(error), "bad");
  }
}

export async function restoreConversation(id: string, opens = false): Promise<boolean> {
  try {
    placeInList(await api.restoreConversation(id));
    if (opens) go(conversationPath(id));
    return true;
  } catch (error) {
    toast(messageOf(error), "bad");
    return false;
  }
}

// -- the open conversation ---------------------------------------------------------------------------------------

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
  if (state.conversation && state.conversation !== before.conversation)
    placeInListQuietly(state.conversation);
  if (state.stale && !before.stale) heal(state.id);
  else if (!state.stale) healAttempts = 0;
}

function placeInListQuietly(row: Conversation): void {
  const known = list.value?.find((other) => other.id === row.id);
  if (!known || known.updated_at !== row.updated_at) placeInList(row);
  else if (list.value) {
    if (known.status !== row.status) tellOfRow(row);
    list.value = list.value.map((other) => (other.id === row.id ? row : other));
  }
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
    if (error.code === "offline" || error.code === "timeout") return;
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

/** The message that is looked for; the conversation goes there as soon as it is here. */
export const wanted = signal(takeMessage());

/** Go to a message of the open conversation, on whichever branch and however far up it is. */
export function reveal(message_id: string): void {
  wanted.value = message_id;
}

// -- the socket --------------------------------------------------------------------------------------------------

export const socketStatus = signal<SocketStatus>("connecting");

function socketUrl(): string {
  const url = new URL(boot.urls.socket, location.href);
  url.protocol = url.protocol === "https:" || url.protocol === "wss:" ? "wss:" : "ws:";
  url.searchParams.set("person", boot.user.id);
  return url.href;
}

const onChange = new Set<(kind: string) => void>();

/** Hear that something of the workspace changed, by its kind. */
export function hearOfChanges(hear: (kind: string) => void): void {
  onChange.add(hear);
}

let nudgeTimers: Record<string, ReturnType<typeof setTimeout>> = {};

/** Several nudges about the same thing within a moment cost one request. */
export function nudge(key: string, refresh: () => unknown): void {
  clearTimeout(nudgeTimers[key]);
  nudgeTimers = { ...nudgeTimers, [key]: setTimeout(refresh, 250) };
}

function take(event: PageEvent): void {
  switch (event.type) {
    case "workspace.changed":
      for (const hear of onChange) hear(event.kind);
      if (event.kind === "conversation.changed") nudge(`c-${event.id}`, () => refreshConversation(event.id));
      else if (event.kind === "import.changed") nudge("imports", loadList);
      else if (event.kind === "resource.changed") {
        changedResources.value = { ...changedResources.value, [event.id]: Date.now() };
      } else if (event.kind === "notice.changed") nudge("notices", loadNotices);
      else if (event.kind === "bud.changed" || event.kind === "server.changed") nudge("buds", loadBuds);
      break;
    case "error":
      toast(event.message, "bad");
      break;
    case "accepted":
    case "pong":
      break;
    default:
      enqueue(event);
  }
}

const onOpening = new Set<() => void>();

/** Hear that the connection is there, or back. */
export function hearOfOpening(hear: () => void): void {
  onOpening.add(hear);
}

const onReturn = new Set<() => void>([loadList, loadBuds]);

/** Hear that the connection is back: changes may have been missed. */
export function hearOfReturn(hear: () => void): void {
  onReturn.add(hear);
}

let wasOpen = false;

export const socket = new LiveSocket({
  url: socketUrl(),
  most_bytes: boot.max_frame_bytes,
  onEvent: take,
  onStatus: (status) => {
    socketStatus.value = status;
    // The server says more than a page that was kept: such as where to sign in.
    if (boot.is_kept && (status === "signed_out" || status === "forbidden")) location.reload();
  },
  onOpen: () => {
    // What was kept has no token and may be of the release before. What was written is in this browser.
    // A page that somebody else left open would read and send with the session of who is signed in now.
    if (boot.is_kept || isAnothers(boot.user.id)) {
      location.reload();
      return;
    }
    const id = place.value;
    if (id) void subscribe(id);
    dropAbsence();
    for (const hear of onOpening) hear();
    if (wasOpen) for (const hear of onReturn) hear();
    else keepShell(home, boot.user.id);
    wasOpen = true;
  },
});

export function startApp(): void {
  addEventListener("popstate", arrive);
  // Who is signed in now, only the server knows.
  if (!boot.is_kept) {
    forgetOthers(boot.user.id);
    hearOfAnother(boot.user.id, () => location.reload());
  }
  socket.start();
  if (boot.is_kept) return;
  void loadBuds();
  placeNotices(boot.urls.notices, boot.csrf_token);
  void loadNotices();
  void loadList();
}
