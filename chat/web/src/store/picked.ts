/** What goes along with a message: chosen files, resources and prompts, by conversation. */
import { signal } from "@preact/signals";
import { toast } from "../app/toasts";
import chat from "../texts/chat";
import { keyOf, MOST_PICKED, type Picked, withPicked } from "./attachments";

/** What the next message of each conversation takes along. */
export const picked = signal<Readonly<Record<string, readonly Picked[]>>>({});
/** Resources whose servers said that they changed, and when that was heard. */
export const changedResources = signal<Readonly<Record<string, number>>>({});

/** Take it along; a message that is full says that it left it out. */
export function takeAlong(conversationId: string, one: Picked): void {
  const before = picked.value[conversationId] ?? [];
  const list = withPicked(before, one);
  picked.value = { ...picked.value, [conversationId]: list };
  if (list === before && !before.some((other) => keyOf(other) === keyOf(one)))
    toast(chat.full(MOST_PICKED, one.title), "bad");
}

export function pickResource(conversationId: string, one: Picked): void {
  takeAlong(conversationId, one);
  document.getElementById("composer-text")?.focus({ preventScroll: true });
}

export function dropPicked(conversationId: string, one: Picked): void {
  const list = (picked.value[conversationId] ?? []).filter((other) => other !== one);
  picked.value = { ...picked.value, [conversationId]: list };
}
