/** Paths through the tree of a conversation's messages. */
import type { Message } from "../wire";

/** As many messages as can be drawn in a frame on a slow machine. */
const PIECE = 10;

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

/** A part of a path in pieces to show one after another, its end first; what stands beside the path is in the first. */
export function inPieces(messages: readonly Message[], end: string | null): Message[][] {
  const path = pathTo(messages, end);
  const onPath = new Set(path);
  const pieces = [messages.filter((message) => !onPath.has(message))];
  for (let to = path.length; to > 0; to -= PIECE) pieces.push(path.slice(Math.max(0, to - PIECE), to));
  return [pieces.slice(0, 2).flat(), ...pieces.slice(2)];
}

/** What follows below a message, in pieces to show one after another; what stands beside the path is in the first. */
export function inPiecesBelow(messages: readonly Message[]): Message[][] {
  const path = messages.filter((message) => !message.is_outline);
  const pieces = [messages.filter((message) => message.is_outline)];
  for (let from = 0; from < path.length; from += PIECE) pieces.push(path.slice(from, from + PIECE));
  return [pieces.slice(0, 2).flat(), ...pieces.slice(2)];
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

/** For each place of the tree where several messages stand: their ids, oldest first. See `placeOf`. */
export function placesWithChoice(messages: readonly Message[]): ReadonlyMap<string, readonly string[]> {
  const places = Map.groupBy(messages, placeOf);
  const found = new Map<string, readonly string[]>();
  for (const [place, there] of places)
    if (there.length > 1)
      found.set(
        place,
        there.map((message) => message.id),
      );
  return found;
}

/** What a message shares with those that stand in its place on other branches. */
export const placeOf = (message: Message): string => `${message.role} ${message.parent_id}`;
