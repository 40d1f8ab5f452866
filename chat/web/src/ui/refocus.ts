import type { RefObject } from "preact";
import { useLayoutEffect } from "preact/hooks";
import { topmost } from "./modal";

/** Whether a field that takes the focus brings up a keyboard over the page. */
export const isTouch = (): boolean => matchMedia("(pointer: coarse)").matches;

/** The field of the next message; on a phone, whose keyboard nobody asked for, the button beside it. */
function composer(): HTMLElement | null | undefined {
  if (isTouch()) return document.querySelector(".composer-bar")?.querySelector("button");
  return document.getElementById("composer-text");
}

/** Go to where the next message is written, or stay in the dialog that lies over it. */
export function toComposer(): void {
  const dialog = topmost();
  (dialog ? dialog.querySelector("button") : composer())?.focus({ preventScroll: true });
}

/** Give the focus back to whatever had it, or where that has gone meanwhile, to the message field. */
export function refocus(before: HTMLElement | null): void {
  if (before?.isConnected) before.focus();
  else toComposer();
}

/** Go on to the message field from a part of the page that goes while it has the focus. */
export function useRefocus(part: RefObject<HTMLElement | null>): void {
  useLayoutEffect(() => {
    const box = part.current;
    return () => {
      if (box?.contains(document.activeElement)) toComposer();
    };
  }, []);
}
