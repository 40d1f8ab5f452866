/** What one does with conversations, and what others have done with them. */

import { api, boot } from "../app/boot";
import { hearOfChanges } from "../app/connection";
import { conversationPath, goOn, homePath, place } from "../app/place";
import { dropActionsAbout, messageAlone, messageOf, toast, UNDO_MS } from "../app/toasts";
import { ApiProblem } from "../net/api";
import { readAgain } from "../net/reading-again";
import shell from "../texts/shell";
import type { Conversation } from "../wire";
import { dropFromList, placeInList } from "./list";
import { openAgain, openProblem, openState } from "./open-conversation";

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
    // They were removed from the workspace, which the page says. The chat is still there, and so is what they typed.
    if (error.code === "workspace_not_found") return;
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
  dropFromList(id);
  goOn(id, homePath, { replace: true });
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
    const from = place.value;
    placeInList(await api.restoreConversation(id));
    if (opens) goOn(from, conversationPath(id));
    return true;
  } catch (error) {
    toast(messageOf(error), "bad");
    return false;
  }
}

hearOfChanges((kind, id) => {
  if (kind === "conversation.changed")
    readAgain(`chat-${id}`, () => refreshConversation(id), { isOwn: true, isReadUnseen: true });
});
openProblem.subscribe((problem) => {
  // It was shown before: whoever was offline did not hear that it was deleted.
  const shown = openState.peek()?.conversation;
  if (problem === shell.noAccess && shown) void refreshConversation(shown.id);
});
