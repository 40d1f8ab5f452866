/** Sending messages, and beginning chats with them: now, or as soon as there is a connection. */
import { signal } from "@preact/signals";
import { api } from "../app/boot";
import { hearOfOpening, socket } from "../app/connection";
import { conversationPath, goOn, place } from "../app/place";
import { messageOf, toast, wayTo } from "../app/toasts";
import { ApiProblem, type ConversationChoice } from "../net/api";
import { CommandError } from "../net/socket";
import { nameOf, type Picked } from "../store/attachments";
import { buds, loadBuds } from "../store/buds";
import type { Asked, Outgoing } from "../store/conversation";
import { draftOf, HOME, keepDraft } from "../store/draft";
import { placeInList, showsArchived } from "../store/list";
import { local, openState, outbox } from "../store/open-conversation";
import { NEW, type Unsent } from "../store/outbox";
import { picked, takeAlong } from "../store/picked";
import { noteBegun } from "../store/temporary";
import chat from "../texts/chat";
import folders from "../texts/folders";
import type { Bud, Conversation, WhenBusy } from "../wire";
import { askAgain } from "./composer/asked";
import { choicesTaken } from "./composer/choices-under-way";
import { carryOver, type Upload, uploadsOf } from "./composer/uploads";

/** The conversation's own bud and model answer. */
const NOBODY_ELSE: Asked = { bud_id: null, compare: [] };

/** A row's first words can be sent right after it was made: they wait here until its snapshot came. */
export async function sendMessage(
  text: string,
  when_busy: WhenBusy = "queue",
  asked: Asked = NOBODY_ELSE,
): Promise<void> {
  if (place.value) await sendTo(place.value, text, when_busy, asked);
}

async function sendTo(id: string, text: string, when_busy: WhenBusy, asked: Asked): Promise<void> {
  const trimmed = text.trim();
  const attachments = picked.value[id] ?? [];
  if (trimmed === "" && attachments.length === 0) return;
  const client_id = crypto.randomUUID();
  picked.value = { ...picked.value, [id]: [] };
  const sent_at = new Date().toISOString();
  const message = { client_id, text: trimmed, attachments, ...asked, sent_at };
  outbox.keep({ ...message, conversation_id: id, when_busy, error: null });
  if (place.value === id) local({ type: "local.sending", ...message });
  await deliver(client_id);
}

/** Messages that wait for what was chosen before them. */
const waiting = new Set<string>();

/** Wait for it. Where it is refused, they stand in the field again: they were not meant for whoever answers now. */
async function waitForChoices({ client_id, conversation_id }: Unsent): Promise<void> {
  waiting.add(client_id);
  const isTaken = await choicesTaken(conversation_id);
  const held = isTaken ? [] : outbox.of(conversation_id).filter((one) => waiting.has(one.client_id));
  for (const one of held.reverse()) putBack(one, conversation_id);
  if (held.length > 0) toast(chat.heldBack, "bad");
  waiting.delete(client_id);
}

/** Send what was not confirmed; if it has been, the server gives the same message again. */
async function deliver(client_id: string): Promise<void> {
  const find = () => outbox.read().find((one) => one.client_id === client_id);
  const kept = find();
  if (kept && !kept.begins) await waitForChoices(kept);
  const message = find();
  if (!message || !socket.isOpen) return;
  if (message.begins) return begin(message);
  const { conversation_id, text, bud_id, when_busy } = message;
  const attachments = message.attachments.map(nameOf);
  const compare = [...(message.compare ?? [])]; // what an earlier version of the page kept has none
  try {
    await socket.ask({
      type: "send",
      conversation_id,
      client_id,
      text,
      when_busy,
      ...(attachments.length > 0 && { attachments }),
      ...(bud_id && { bud_id }),
      ...(compare.length > 0 && { compare }),
    });
    outbox.drop(client_id);
  } catch (error) {
    // Without a connection the message waits and goes out again, under the same id, when it is back.
    if (error instanceof CommandError && error.code === "offline") return;
    const why = messageOf(error);
    const isGone = error instanceof CommandError && error.code === "not_found";
    const shown = openState.value?.conversation;
    const isTemporary = shown?.id === conversation_id && shown.is_temporary;
    const isKept = isGone && text !== "" && !isTemporary;
    if (isGone) outbox.drop(client_id);
    else outbox.mark(client_id, why);
    if (isKept) {
      keepDraft(HOME, [draftOf(HOME), text].filter(Boolean).join("\n\n"));
      toast(chat.sentNowhere, "bad");
    } else if (place.value !== conversation_id) toast(chat.notSent(why), "bad"); // nobody would see it at the message
    local({ type: "local.send_failed", client_id, error: why });
  }
}

/** Messages that begin a chat as soon as there is a connection or the server has answered, the oldest first. */
export const beginnings = signal<readonly Outgoing[]>([]);
const starting = new Set<Outgoing>();
const showBeginnings = (): void => {
  beginnings.value = [...outbox.of(NEW), ...starting];
};

const SOON_MS = 300;

/** Show on the start page what is being sent, if that takes its time. Gives what ends it. */
function showStarting(message: Outgoing): () => void {
  const show = setTimeout(() => {
    starting.add(message);
    showBeginnings();
  }, SOON_MS);
  return () => {
    clearTimeout(show);
    if (starting.delete(message)) showBeginnings();
  };
}

/** What the start page takes along, for the chat that begins; it is gone there. */
function takeFromHome(): readonly Picked[] {
  const taken = picked.value[HOME] ?? [];
  picked.value = { ...picked.value, [HOME]: [] };
  return taken;
}

/** Keep the first words of a chat until the server can be reached. */
export function keepBeginning(
  text: string,
  bud_id: string | null,
  choice: Partial<ConversationChoice>,
  asked: Asked = NOBODY_ELSE,
  client_id: string = crypto.randomUUID(),
): void {
  outbox.keep({
    client_id,
    conversation_id: NEW,
    text: text.trim(),
    sent_at: new Date().toISOString(),
    attachments: takeFromHome(),
    ...asked,
    error: null,
    when_busy: "queue",
    begins: { bud_id, choice },
  });
  showBeginnings();
}

/** Open a chat. Where its folder has gone meanwhile, it stands in none. */
async function open(
  bud_id: string,
  client_id: string,
  { folder_id, ...choice }: Partial<ConversationChoice>,
): Promise<Conversation> {
  if (folder_id === undefined) return api.startConversation(bud_id, client_id, choice);
  try {
    return await api.startConversation(bud_id, client_id, { ...choice, folder_id });
  } catch (error) {
    if (!(error instanceof ApiProblem && error.field === "folder_id")) throw error;
    toast(folders.gone, "bad");
    return api.startConversation(bud_id, `${client_id}.unsorted`, choice);
  }
}

/** Begin the chat of a kept message, and send it there; asked twice, the server gives the same chat again. */
async function begin({ begins, ...message }: Unsent): Promise<void> {
  const { client_id } = message;
  try {
    if (!buds.value) await loadBuds();
    const bud_id = begins?.bud_id ?? buds.value?.[0]?.id;
    if (!bud_id) {
      if (buds.value) throw new Error(chat.noBudAnswers);
      return;
    }
    const row = await open(bud_id, client_id, begins?.choice ?? {});
    if (!showsArchived.value) placeInList(row);
    outbox.keep({ ...message, conversation_id: row.id });
    const isLast = outbox.of(NEW).length === 0;
    const mayGo = isLast && draftOf(HOME) === "";
    if (!mayGo || !goOn(null, conversationPath(row.id))) toast(chat.begun, "ok", wayTo(row.id));
    await deliver(client_id);
  } catch (error) {
    if (!(error instanceof ApiProblem && error.code === "offline")) outbox.mark(client_id, messageOf(error));
  } finally {
    showBeginnings();
  }
}

export function resend(client_id: string): void {
  outbox.mark(client_id, null);
  showBeginnings();
  local({ type: "local.resending", client_id });
  void deliver(client_id);
}

function putBack(message: Outgoing, draft: string): void {
  discard(message.client_id);
  keepDraft(draft, [message.text, draftOf(draft)].filter(Boolean).join("\n\n"));
  for (const one of message.attachments) takeAlong(draft, one);
  askAgain(draft, message);
}

/** Put a message that was not sent back into its field, to be changed: with its files, and with whom it asks. */
export function takeBack(message: Outgoing): void {
  putBack(message, place.value ?? HOME);
  document.getElementById("composer-text")?.focus({ preventScroll: true });
}

export function discard(client_id: string): void {
  outbox.drop(client_id);
  showBeginnings();
  local({ type: "local.discard", client_id });
}

/**
 * What became of a chat that was to begin: it is open, it began while they had gone elsewhere, its words wait in this
 * browser, or they are the person's again.
 */
export type Beginning = "open" | "begun" | "kept" | "failed";

/**
 * Start a conversation with a bud and, where words are given, say them.
 *
 * @param onRefused called where the server does not take the choice, such as a model or server that has gone.
 */
export async function startConversation(
  bud: Bud,
  text = "",
  choice: Partial<ConversationChoice> = {},
  asked: Asked = NOBODY_ELSE,
  onRefused: () => void = () => {},
): Promise<Beginning> {
  const client_id = crypto.randomUUID();
  const sent_at = new Date().toISOString();
  const attachments = picked.value[HOME] ?? [];
  const shown = showStarting({ client_id, text: text.trim(), attachments, ...asked, sent_at, error: null });
  try {
    const row = await open(bud.id, client_id, choice);
    noteBegun(row);
    if (!showsArchived.value) placeInList(row);
    const waiting = uploadsOf(HOME);
    // Until its files have arrived the message stays a draft, so that nothing of it is lost if one does not.
    if (waiting.length > 0) keepDraft(row.id, text);
    const taken = takeFromHome();
    for (const one of taken) takeAlong(row.id, one);
    const isOpen = goOn(null, conversationPath(row.id));
    if (!isOpen) toast(chat.begun, "ok", wayTo(row.id));
    if (waiting.length > 0) void sendWithFiles(row.id, text, waiting, asked);
    else void sendTo(row.id, text, "queue", asked);
    return isOpen ? "open" : "begun";
  } catch (error) {
    const isAway = error instanceof ApiProblem && error.code === "offline";
    const saysSomething = text.trim() !== "" || (picked.value[HOME] ?? []).length > 0;
    if (isAway && saysSomething && uploadsOf(HOME).length === 0) {
      keepBeginning(text, bud.id, choice, asked, client_id);
      return "kept";
    }
    if (error instanceof ApiProblem && error.field in choice) {
      onRefused();
      toast(chat.choiceRefused, "bad");
    } else toast(messageOf(error), "bad");
    return "failed";
  } finally {
    shown();
  }
}

async function sendWithFiles(
  id: string,
  text: string,
  waiting: readonly Upload[],
  asked: Asked,
): Promise<void> {
  // It stays a draft there, with whom it asks, as it does where they have changed it meanwhile.
  if (!(await carryOver(HOME, id, waiting)) || draftOf(id) !== text) return askAgain(id, asked);
  keepDraft(id, "");
  void sendTo(id, text, "queue", asked);
}

/** Show what waits in this browser, and send it whenever the connection is there. */
export function followConnection(): void {
  showBeginnings();
  hearOfOpening(() => {
    for (const one of outbox.read()) if (one.error === null) void deliver(one.client_id);
  });
}
