/** Paths through the tree of a conversation's messages. */
import type { Message } from "../wire";

/** From the first message that is known to the one the shown path ends with; all, where no end is known. */
export function pathTo(messages: readonly Message[], leafId: string | null): readonly Message[] {
  if (leafId === null) return messages;
  const byId = new Map(messages.map((message) => [message.id, message]));
  const path: Message[] = [];
  let current = byId.get(leafId);
  while (current && path.length <= messages.length) {
    path.push(current);
    current = current.parent_id === null ? undefined : byId.get(current.parent_id);
  }
  return path.reverse();
}

/** Whether messages are missing before these. */
export function isPart(messages: readonly Message[]): boolean {
  const ids = new Set(messages.map((message) => message.id));
  return messages.some((message) => message.parent_id !== null && !ids.has(message.parent_id));
}

/** Whether the path to this end cannot be shown, since it was not read with the part of the conversation that is here. */
export function isUnread(messages: readonly Message[], leafId: string | null): boolean {
  const path = leafId === null ? messages : pathTo(messages, leafId);
  return path.some((message) => message.is_outline) || (path.length === 0 && isPart(messages));
}

/** A message and those that stand in its place on other branches, oldest first. */
export function siblings(messages: readonly Message[], message: Message): Message[] {
  return messages.filter((other) => other.parent_id === message.parent_id && other.role === message.role);
}
