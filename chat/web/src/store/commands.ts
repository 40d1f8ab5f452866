/** What people do in the open chat, each as one command; what did not work is told in words. */

import { api } from "../app/boot";
import { socket } from "../app/connection";
import { conversationPath, goOn, place } from "../app/place";
import { messageOf, toast, wayTo } from "../app/toasts";
import { CommandError } from "../net/socket";
import shell from "../texts/shell";
import type { ChosenModel, InputAction, JsonObject, Rating, Resolution, Wish } from "../wire";
import { placeInList, showsArchived } from "./list";

async function command(promise: Promise<unknown>): Promise<boolean> {
  try {
    await promise;
    return true;
  } catch (error) {
    toast(messageOf(error), "bad");
    return false;
  }
}

/** Say that the end of a conversation was seen. Without a connection it is said with the next one. */
export const markSeen = (conversation_id: string, until: string): boolean =>
  socket.tell({ type: "seen", conversation_id, until });
export const stopTurn = (turn_id: string): Promise<boolean> => command(socket.ask({ type: "stop", turn_id }));
export const retryTurn = (turn_id: string): Promise<boolean> =>
  command(socket.ask({ type: "retry", turn_id }));

export const editMessage = (message_id: string, text: string): Promise<boolean> =>
  command(socket.ask({ type: "edit_message", message_id, client_id: crypto.randomUUID(), text }));
export const regenerate = (
  turn_id: string,
  changed: { wish?: Wish; model?: { provider_id: string | null; name: string } } = {},
): Promise<boolean> =>
  command(socket.ask({ type: "regenerate", turn_id, client_id: crypto.randomUUID(), ...changed }));
/** Have another model answer the same question, beside this answer. */
export const compareAnswer = (turn_id: string, model: ChosenModel): Promise<boolean> =>
  command(socket.ask({ type: "compare", turn_id, client_id: crypto.randomUUID(), model }));
/** Go on from this one of the answers that stand side by side. */
export const chooseAnswer = (turn_id: string): Promise<boolean> =>
  command(socket.ask({ type: "choose", turn_id }));
export const continueTurn = (turn_id: string): Promise<boolean> =>
  command(socket.ask({ type: "continue", turn_id }));
export const rateTurn = (turn_id: string, rating: Rating, reason = ""): Promise<boolean> =>
  command(socket.ask({ type: "rate", turn_id, rating, reason }));
export const showBranch = (message_id: string): Promise<boolean> =>
  command(socket.ask({ type: "show_branch", message_id }));
export const changeSummary = (
  message_id: string,
  change: { text?: string; is_used?: boolean },
): Promise<boolean> => command(api.changeSummary(message_id, change));
export const editQueued = (queued_id: string, text: string): Promise<boolean> =>
  command(socket.ask({ type: "edit_queued", queued_id, text }));
export const removeQueued = (queued_id: string): Promise<boolean> =>
  command(socket.ask({ type: "remove_queued", queued_id }));
export const sendQueuedNow = (queued_id: string): Promise<boolean> =>
  command(socket.ask({ type: "send_queued", queued_id }));
export const resolveCall = (tool_call_id: string, resolution: Resolution, note?: string): Promise<boolean> =>
  command(socket.ask({ type: "resolve", tool_call_id, resolution, ...(note && { note }) }));

/** The shown path as a file. */
export async function downloadConversation(id: string, as: "md" | "json"): Promise<void> {
  try {
    const { name, body } = await api.exported(id, as);
    const link = document.createElement("a");
    link.href = URL.createObjectURL(body);
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
  } catch (error) {
    toast(messageOf(error), "bad");
  }
}

/** Go on in a new conversation, with a copy of everything up to this answer. */
export async function forkFrom(message_id: string): Promise<void> {
  try {
    const from = place.value;
    const row = await api.fork(message_id, crypto.randomUUID());
    if (!showsArchived.value) placeInList(row);
    if (goOn(from, conversationPath(row.id))) toast(shell.forked, "ok");
    else toast(shell.forkedElsewhere, "ok", wayTo(row.id));
  } catch (error) {
    toast(messageOf(error), "bad");
  }
}

/** Answer what a member asks for. */
export const decideRequest = (id: string, isGranted: boolean, note: string): Promise<boolean> =>
  command(api.decideRequest(id, isGranted, note));

/** Allow or refuse, as a second person, a call that somebody else asked for. */
export const decideForOther = (id: string, decision: "approve" | "refuse", note: string): Promise<boolean> =>
  command(api.decideCall(id, decision, note));
/** Have a tool ask each time. */
export const askAlways = (toolId: string): Promise<boolean> => command(api.askAlways(toolId));

export function decide(
  tool_call_id: string,
  decision: "approve" | "refuse",
  extra: { arguments?: JsonObject; note?: string; remember?: "conversation" | "everywhere" } = {},
): Promise<boolean> {
  return command(socket.ask({ type: "decide", tool_call_id, decision, ...extra }));
}

/** Answer what a server asked; null where that worked, else what is wrong with which field. */
export async function answerInput(
  input_request_id: string,
  action: InputAction,
  content?: JsonObject,
): Promise<Readonly<Record<string, string[]>> | null> {
  try {
    await socket.ask({ type: "answer_input", input_request_id, action, ...(content && { content }) });
    return null;
  } catch (error) {
    const fields = error instanceof CommandError ? error.fields : {};
    if (Object.keys(fields).length === 0) toast(messageOf(error), "bad");
    return fields;
  }
}
