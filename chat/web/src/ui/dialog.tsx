import type { ComponentChildren, RefObject } from "preact";
import { useEffect, useId, useRef } from "preact/hooks";
import common from "../texts/common";
import { Icon } from "./icon";
import { leavingWith, openModal } from "./modal";
import { refocus, toComposer } from "./refocus";

interface DialogProps {
  title: string;
  onClose: () => void;
  children: ComponentChildren;
  /** The search dialog shows its field instead of a heading; the title stays its name. */
  isBare?: boolean;
  /** True as it closes: the focus goes on to the message field, and not back to where it was. */
  leadsOn?: RefObject<boolean>;
}

/** Where somebody begins to work in a dialog: what says so itself, else its first control. Null: nothing is there yet. */
function beginningOf(body: Element): HTMLElement | null {
  const controls = [
    ...body.querySelectorAll<HTMLElement>("input,select,textarea,button,a[href],[tabindex='0']"),
  ];
  const usable = controls.filter((one) => !one.matches(":disabled,[type=hidden]"));
  return usable.find((one) => one.autofocus) ?? usable[0] ?? null;
}

/**
 * Put the focus where somebody begins to work, also where that comes a moment later; whoever has gone on keeps it.
 *
 * @returns what ends the waiting.
 */
function beginAt(dialog: HTMLElement, body: Element): () => void {
  const stop = () => {
    observer.disconnect();
    dialog.removeEventListener("keydown", stop);
    dialog.removeEventListener("pointerdown", stop);
  };
  const place = () => {
    const first = body.querySelector("[aria-busy=true]") ? null : beginningOf(body);
    if (!first) return;
    stop();
    first.focus();
    // A name that is there is mostly replaced: what one types takes its place, as in a list of files.
    if (first instanceof HTMLInputElement) first.select();
  };
  const observer = new MutationObserver(place);
  observer.observe(body, { childList: true, subtree: true, attributes: true });
  dialog.addEventListener("keydown", stop);
  dialog.addEventListener("pointerdown", stop);
  place();
  return stop;
}

interface DialogButtonsProps {
  onCancel: () => void;
  /** How leaving is called where it is not "Cancel". */
  cancel?: string;
  /** The verb of what the dialog is for. */
  label: string;
  /** Absent: the form that the buttons stand in is sent. */
  onClick?: () => void;
  /** Something is lost with it, so that leaving is where somebody begins. */
  isDestructive?: boolean;
  isBusy?: boolean;
}

/** The end of a dialog: leave it, or do what it is for. */
export function DialogButtons(props: DialogButtonsProps) {
  const { onCancel, cancel = common.cancel, label, onClick, isDestructive = false, isBusy = false } = props;
  return (
    <div class="dialog-foot flex justify-end gap-2">
      <button type="button" class="btn btn-outline-quiet" autofocus={isDestructive} onClick={onCancel}>
        {cancel}
      </button>
      <button
        type={onClick ? "button" : "submit"}
        class={`btn ${isDestructive ? "btn-error" : "btn-primary"}`}
        disabled={isBusy}
        onClick={onClick}
      >
        {isBusy && <Icon name="loader" class="animate-spin" />}
        {label}
      </button>
    </div>
  );
}

/** A native modal dialog that lives as long as it is mounted; focus goes back to where it was, or to the message field if that is gone. */
export function Dialog({ title, onClose, children, isBare = false, leadsOn }: DialogProps) {
  const ref = useRef<HTMLDialogElement>(null);
  const body = useRef<HTMLDivElement>(null);
  const id = useId();
  // After the menu that led here has closed: it gives the focus back to its button.
  useEffect(() => {
    const before = document.activeElement as HTMLElement | null;
    const leave = ref.current ? openModal(ref.current) : undefined;
    const stop = ref.current && body.current && beginAt(ref.current, body.current);
    return () => {
      stop?.();
      leave?.();
      if (leadsOn?.current) return toComposer();
      // Whoever has gone on elsewhere meanwhile keeps the focus.
      const now = document.activeElement;
      // Chromium gives the focus back itself, but to a message field at times without a caret: nothing can be typed.
      if (now === before) before?.blur();
      if (!now || now === document.body || now === before) refocus(before);
    };
  }, []);
  return (
    <dialog
      ref={ref}
      class={isBare ? "sheet sheet-top" : "sheet"}
      aria-labelledby={isBare ? undefined : id}
      aria-label={isBare ? title : undefined}
      {...leavingWith(ref, onClose)}
      onClick={(event) => event.target === ref.current && onClose()}
    >
      {!isBare && (
        <header class="dialog-head flex items-center justify-between gap-3 px-5">
          <h2 id={id} class="text-base">
            {title}
          </h2>
          <button
            type="button"
            class="btn btn-sm btn-square btn-quiet"
            aria-label={common.close}
            onClick={onClose}
          >
            <Icon name="close" />
          </button>
        </header>
      )}
      <div ref={body} class="contents">
        {children}
      </div>
    </dialog>
  );
}
