/** Short notes at the edge of the page, and what errors say in them. */
import { signal } from "@preact/signals";
import { ApiProblem } from "../net/api";
import chat from "../texts/chat";
import common from "../texts/common";
import { COPY_BLOCKED } from "../ui/copy-text";
import type { BootMessage } from "../wire";
import { conversationPath, go } from "./place";

interface Toast {
  id: number;
  tone: "info" | "ok" | "bad";
  text: string;
  action: {
    label: string;
    run: () => void;
    /** The chats that it would change. */
    about?: readonly string[];
  } | null;
}

export const toasts = signal<Toast[]>([]);
let toastCounter = 0;

/** How long one can take back what was archived or deleted. */
export const UNDO_MS = 30_000;

export function toast(
  text: string,
  tone: Toast["tone"] = "info",
  action: Toast["action"] = null,
  duration_ms = tone === "bad" || action ? 9000 : 4500,
): void {
  toastCounter += 1;
  const id = toastCounter;
  // Said again, it stands there once; each way back stays.
  const others = toasts.value.filter((one) => one.text !== text || one.action || action);
  toasts.value = [...others.slice(-2), { id, tone, text, action }];
  setTimeout(() => dismissToast(id), duration_ms);
}

/** Say what became of something on the page before; for longer, since whoever arrives looks around first. */
export function tellMessages(messages: readonly BootMessage[]): void {
  for (const { text, tone } of messages) toast(text, tone, null, 9000);
}

/** The way to a chat, for a note about one that is not open. */
export const wayTo = (id: string): Toast["action"] => ({
  label: chat.openChat,
  run: () => go(conversationPath(id)),
  about: [id],
});

addEventListener(COPY_BLOCKED, () => toast(common.copyBlocked, "bad"));

export function dismissToast(id: number): void {
  toasts.value = toasts.value.filter((t) => t.id !== id);
}

/** Say no longer that there is no connection. */
export function dropAbsence(): void {
  toasts.value = toasts.value.filter(({ text }) => text !== common.notConnected && text !== common.offline);
}

/** Offer no way back any more that is about a chat which is gone: nothing can change it now. */
export function dropActionsAbout(ids: readonly string[]): void {
  toasts.value = toasts.value.filter((one) => !one.action?.about?.some((id) => ids.includes(id)));
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : common.failed;
}

/** The same at the field that it is about, where the field's name in the request says nothing. */
export function messageAt(field: string, error: unknown): string {
  const name = common.fieldProblem(field, "");
  const message = messageOf(error);
  return message.startsWith(name) ? message.slice(name.length) : message;
}

/** The same where no field is shown that it could be about. */
export function messageAlone(error: unknown): string {
  return error instanceof ApiProblem ? messageAt(error.field, error) : messageOf(error);
}
