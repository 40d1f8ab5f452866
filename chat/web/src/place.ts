/** Where in the workspace this page is, and the way elsewhere. */
import { batch, signal } from "@preact/signals";
import { boot } from "./boot";

export const homePath = `/w/${boot.workspace.slug}/`;
export const conversationPath = (id: string): string => `${homePath}c/${id}/`;
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

/** The message that is looked for; the conversation goes there as soon as it is here. */
export const wanted = signal(takeMessage());

/** Go to a message of the open conversation, on whichever branch and however far up it is. */
export function reveal(message_id: string): void {
  wanted.value = message_id;
}

type HearPlace = (next: string | null, previous: string | null) => void;
const onPlace = new Set<HearPlace>();

/** Hear which conversation is opened, and which one is left for it. */
export function hearOfPlace(hear: HearPlace): void {
  onPlace.add(hear);
}

export function go(path: string, { replace = false } = {}): void {
  if (path !== location.pathname) {
    if (replace) history.replaceState(null, "", path);
    else history.pushState(null, "", path);
  }
  arrive();
}

/** Look at the address again: it has changed. */
export function arrive(): void {
  const next = readPlace();
  const message = takeMessage();
  isSidebarOpen.value = false;
  if (message) reveal(message);
  const previous = place.value;
  if (next === previous) return;
  batch(() => {
    place.value = next;
    for (const hear of onPlace) hear(next, previous);
  });
}
