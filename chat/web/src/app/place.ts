/** Where in the workspace this page is, and the way elsewhere. */
import { batch, signal } from "@preact/signals";
import { moveTo, pathOfPage } from "../browser/layers";
import { boot } from "./boot";

export const homePath = `/w/${boot.workspace.slug}/`;
export const conversationPath = (id: string): string => `${homePath}c/${id}/`;
/** The whole chat, for paper. */
export const printPath = (id: string): string => `${conversationPath(id)}print/`;

function readPlace(): string | null {
  const match = /\/c\/([0-9a-f-]{36})\/?$/.exec(pathOfPage());
  return match?.[1] ?? null;
}

/** The open conversation's id; null is the workspace's home. */
export const place = signal<string | null>(readPlace());
export const isSidebarOpen = signal(false);

/** The message that the address names, as links in mails do; read once, so that a reload stays where one is. */
function takeMessage(): string | null {
  const id = /^#message-([0-9a-f-]{36})$/.exec(location.hash)?.[1] ?? null;
  if (id) history.replaceState(history.state, "", location.pathname);
  return id;
}

/** The message that is looked for; the conversation goes there as soon as it is here. */
export const wanted = signal(takeMessage());

/** Go to a message of the open conversation, on whichever branch and however far up it is. */
export function reveal(message_id: string): void {
  wanted.value = message_id;
}

/** @param isChosen whether somebody went there; else the page did, with what it had to wait for. */
type HearPlace = (next: string | null, previous: string | null, isChosen: boolean) => void;
const onPlace = new Set<HearPlace>();

/** Hear which conversation is opened, and which one is left for it. */
export function hearOfPlace(hear: HearPlace): void {
  onPlace.add(hear);
}

/** Go where somebody has just asked to go. */
export function go(path: string): void {
  if (path !== pathOfPage()) moveTo(path);
  arrive();
}

/**
 * Go on to what has come of something that took its time, from the place where it was asked for.
 *
 * Whoever has gone elsewhere meanwhile stays there, and the list of chats stays where it was opened over the page.
 *
 * @returns whether the page went there.
 */
export function goOn(from: string | null, path: string, { replace = false } = {}): boolean {
  if (place.value !== from) return false;
  moveTo(path, { replaces: replace });
  readAddress(false);
  return true;
}

/** Look at the address again: somebody has changed it. */
export function arrive(): void {
  isSidebarOpen.value = false;
  readAddress(true);
}

function readAddress(isChosen: boolean): void {
  const next = readPlace();
  const message = takeMessage();
  if (message) reveal(message);
  const previous = place.value;
  if (next === previous) return;
  batch(() => {
    place.value = next;
    for (const hear of onPlace) hear(next, previous, isChosen);
  });
}
