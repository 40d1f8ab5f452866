/** A text being changed at its place: Ctrl+Enter keeps it, Escape leaves it. */
import type { ComponentChildren } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import common from "../texts/common";
import { useRefocus } from "./refocus";

interface TextEditorProps {
  id: string;
  label: string;
  text: string;
  /** Lines beside those of the text, and how many are shown at most. */
  moreRows: number;
  mostRows: number;
  maxLength?: number;
  /** What the button says. */
  action: string;
  note?: ComponentChildren;
  /** False: it was refused, and the editor stays. */
  save: (text: string) => Promise<boolean>;
  onClose: () => void;
  /** What was typed before, where whoever shows the editor keeps it while it is out of sight. */
  kept?: string | undefined;
  onType?: (text: string) => void;
}

export function TextEditor(props: TextEditorProps) {
  const { id, text: before, kept, save, onClose } = props;
  const form = useRef<HTMLFormElement>(null);
  const field = useRef<HTMLTextAreaElement>(null);
  const [text, setText] = useState(kept ?? before);
  const [isBusy, setBusy] = useState(false);
  useRefocus(form);
  useLayoutEffect(() => {
    if (kept !== undefined) return; // somebody came back to the page around it
    field.current?.focus();
    field.current?.setSelectionRange(before.length, before.length);
  }, []);
  const keep = async () => {
    if (text.trim() === "" || isBusy) return;
    setBusy(true);
    if (await save(text.trim())) onClose();
    else setBusy(false);
  };
  return (
    <form
      ref={form}
      class="message-editor"
      onSubmit={(event) => {
        event.preventDefault();
        void keep();
      }}
    >
      <label class="sr-only" for={id}>
        {props.label}
      </label>
      <textarea
        ref={field}
        id={id}
        rows={Math.min(props.mostRows, text.split("\n").length + props.moreRows)}
        maxLength={props.maxLength}
        value={text}
        onInput={(event) => {
          setText(event.currentTarget.value);
          props.onType?.(event.currentTarget.value);
        }}
        onKeyDown={(event) => {
          if (event.key === "Escape") onClose();
          else if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
            event.preventDefault();
            void keep();
          }
        }}
      />
      <div class="flex flex-wrap items-center justify-end gap-2">
        {props.note ? (
          <span class="grow text-xs text-(--quiet) max-[30rem]:basis-full">{props.note}</span>
        ) : null}
        <button type="button" class="btn btn-quiet btn-sm" onClick={onClose}>
          {common.cancel}
        </button>
        <button type="submit" class="btn btn-primary btn-sm" disabled={isBusy || text.trim() === ""}>
          {props.action}
        </button>
      </div>
    </form>
  );
}
