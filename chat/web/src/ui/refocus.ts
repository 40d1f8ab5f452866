import type { RefObject } from "preact";
import { useLayoutEffect } from "preact/hooks";

/** Whether a field that takes the focus brings up a keyboard over the page. */
export const isTouch = (): boolean => matchMedia("(pointer: coarse)").matches;

/** Go to where the next message is written; on a phone, whose keyboard nobody asked for, to the button beside it. */
export function toComposer(): void {
  const field = document.getElementById("composer-text");
  const place = isTouch() ? document.querySelector(".composer-bar")?.querySelector("button") : field;
  place?.focus({ preventScroll: true });
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
