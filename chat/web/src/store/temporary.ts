/** Temporary chats: in no list, and deleted some hours after their last activity unless they are kept. */
import { signal } from "@preact/signals";
import { api, boot } from "../app/boot";
import { place } from "../app/place";
import { messageOf, toast } from "../app/toasts";
import { notedHome } from "../browser/last-chat";
import shell from "../texts/shell";
import { placeInList } from "./list";
import { openState } from "./open-conversation";

/** Whose choices on the start page this tab remembers. */
export const whose = `${boot.user.id}.${boot.workspace.slug}`;

/** Whether the chat that is about to begin is temporary. */
export const isNextTemporary = signal(notedHome(whose)?.is_temporary ?? false);

/** Those that began in this page, until they are kept: none of them is open before it has loaded. */
const begun = new Set<string>();

export function noteBegun(row: { id: string; is_temporary: boolean }): void {
  if (row.is_temporary) begun.add(row.id);
}

/** Whether a chat is temporary, as far as this page knows: it is open, or began here. */
export const isTemporary = (id: string): boolean =>
  begun.has(id) || (id === place.value && (openState.value?.conversation?.is_temporary ?? false));

/** Make it a usual chat. */
export async function keepChat(id: string): Promise<void> {
  try {
    placeInList(await api.keepConversation(id));
    begun.delete(id);
    toast(shell.kept, "ok");
  } catch (error) {
    toast(messageOf(error), "bad");
  }
}
