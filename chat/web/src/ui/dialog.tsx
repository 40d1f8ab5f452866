import type { ComponentChildren } from "preact";
import { useEffect, useId, useRef } from "preact/hooks";
import common from "../texts/common";
import { Icon } from "./icon";

interface DialogProps {
  title: string;
  onClose: () => void;
  children: ComponentChildren;
  /** The search dialog shows its field instead of a heading; the title stays its name. */
  isBare?: boolean;
}

/** A native modal dialog that lives as long as it is mounted; focus goes back to where it was. */
export function Dialog({ title, onClose, children, isBare = false }: DialogProps) {
  const ref = useRef<HTMLDialogElement>(null);
  const id = useId();
  useEffect(() => {
    const before = document.activeElement as HTMLElement | null;
    ref.current?.showModal();
    return () => {
      // Whoever has gone on elsewhere meanwhile keeps the focus.
      const now = document.activeElement;
      if (!now || now === document.body || ref.current?.contains(now)) before?.focus?.();
    };
  }, []);
  return (
    <dialog
      ref={ref}
      class="sheet"
      aria-labelledby={isBare ? undefined : id}
      aria-label={isBare ? title : undefined}
      onClose={onClose}
      onClick={(event) => event.target === ref.current && ref.current?.close()}
    >
      {!isBare && (
        <header class="flex items-center justify-between gap-3 px-5 pt-4">
          <h2 id={id} class="text-base">
            {title}
          </h2>
          <button
            type="button"
            class="btn btn-sm btn-square btn-quiet"
            aria-label={common.close}
            onClick={() => ref.current?.close()}
          >
            <Icon name="close" />
          </button>
        </header>
      )}
      {children}
    </dialog>
  );
}
