/** Dialogs over everything else. Nothing outside of the topmost one can be seen in full or pressed, so notes are shown within it. */
import { signal } from "@preact/signals";

const open = signal<readonly HTMLDialogElement[]>([]);

/** The dialog over all others; undefined: none is open. */
export const topmost = (): HTMLDialogElement | undefined => open.value.at(-1);

/**
 * Open a dialog over everything else.
 *
 * @returns what says that it is gone.
 */
export function openModal(dialog: HTMLDialogElement): () => void {
  dialog.showModal();
  open.value = [...open.value, dialog];
  return () => {
    open.value = open.value.filter((one) => one !== dialog);
  };
}
