/** Dialogs over everything else. Nothing outside of the topmost one can be seen in full or pressed, so notes are shown within it. */
import { signal } from "@preact/signals";
import type { RefObject } from "preact";
import { openLayer } from "../browser/layers";

const open = signal<readonly HTMLDialogElement[]>([]);

/** The dialog over all others; undefined: none is open. */
export const topmost = (): HTMLDialogElement | undefined => open.value.at(-1);

/**
 * Open a dialog over everything else.
 *
 * @returns what closes it, so that what lies behind can have the focus again.
 */
export function openModal(dialog: HTMLDialogElement): () => void {
  dialog.showModal();
  open.value = [...open.value, dialog];
  const closed = openLayer(() => dialog.dispatchEvent(new Event("cancel")));
  return () => {
    closed();
    open.value = open.value.filter((one) => one !== dialog);
    dialog.close();
  };
}

/**
 * Leave a dialog at once when the browser asks for it: with Escape, or the gesture for "back".
 *
 * A dialog that the browser closes says so a moment later. By then a quick person may have opened the next one, and
 * that word would close it.
 *
 * @returns what its element hears.
 */
export function leavingWith(ref: RefObject<HTMLDialogElement | null>, leave: () => void) {
  return {
    onCancel: (event: Event) => {
      if (event.target !== ref.current) return; // a file picker in it was left
      event.preventDefault();
      leave();
    },
    // Without the question before, as some browsers do at a second Escape.
    onClose: () => ref.current && leave(),
  };
}
