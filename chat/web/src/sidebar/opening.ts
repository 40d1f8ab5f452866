/** What keys and buttons open, wherever in the page they are. */
import { signal } from "@preact/signals";
import { go, homePath } from "../app/place";
import { setNextTemporary } from "../store/draft";

export const isHelpOpen = signal(false);
export const isSearchOpen = signal(false);

export function focusComposer(): void {
  document.querySelector<HTMLTextAreaElement>("#composer-text")?.focus();
}

export function newChat(isTemporary = false): void {
  setNextTemporary(isTemporary);
  go(homePath);
  requestAnimationFrame(focusComposer);
}
