/** A text being changed at its place: Ctrl+Enter keeps it, Escape leaves it. */
import type { ComponentChildren } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import common from "../texts/common";

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
}

export function TextEditor(props: TextEditorProps) {
  const { id, text: before, save, onClose } = props;
  const field = useRef<HTMLTextAreaElement>(null);
  const [text, setText] = useState(before);
  const [isBusy, setBusy] = useState(false);
  useLayoutEffect(() => {
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
        onInput={(event) => setText(event.currentTarget.value)}
        onKeyDown={(event) => {
          if (event.key === "Escape") onClose();
          else if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
            event.preventDefault();
            void keep();
          }
        }}
      />
      <div class="flex flex-wrap items-center justify-end gap-2">
        {props.note ? <span class="grow text-xs text-(--quiet)">{props.note}</span> : null}
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
