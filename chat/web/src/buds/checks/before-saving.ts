/** Holds back the editor's Save until its checks have passed, or the person saves anyway. */

export interface Gate {
  /** The run that Save waits for has ended: go on, or drop it. */
  letThrough: () => void;
  drop: () => void;
  isWaiting: () => boolean;
  close: () => void;
}

/**
 * Ask `begin` instead of saving, as long as `isWanted`. Whoever changes something meanwhile has to save again: what was
 * checked is not what stands there any more.
 */
export function holdSaving(
  editor: HTMLFormElement,
  isWanted: () => boolean,
  begin: () => void,
  dropped: () => void,
): Gate {
  let held: { submitter: HTMLElement | null } | null = null;
  let isOpen = false;
  const onSubmit = (event: SubmitEvent) => {
    if (isOpen || !isWanted()) return;
    event.preventDefault();
    event.stopImmediatePropagation();
    if (held) return;
    held = { submitter: event.submitter };
    begin();
  };
  const drop = () => {
    held = null;
  };
  const onInput = () => {
    if (!held) return;
    drop();
    dropped();
  };
  editor.addEventListener("submit", onSubmit, { capture: true });
  editor.addEventListener("input", onInput);
  return {
    letThrough: () => {
      const submitter = held?.submitter ?? null;
      drop();
      isOpen = true;
      editor.requestSubmit(submitter);
      isOpen = false;
    },
    drop,
    isWaiting: () => held !== null,
    close: () => {
      editor.removeEventListener("submit", onSubmit, { capture: true });
      editor.removeEventListener("input", onInput);
    },
  };
}
