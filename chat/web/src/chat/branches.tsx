/** Other wordings of a question, other answers to it: moving between them, making more, and going on elsewhere. */
import { useEffect, useRef, useState } from "preact/hooks";
import { editMessage, openState, runningTurn, showBranch } from "../app";
import { siblings } from "../store/paths";
import t from "../texts/chat";
import common from "../texts/common";
import { Icon } from "../ui/icon";
import type { Message } from "../wire";

/** `‹ 2/3 ›`; nothing where there is only one. */
export function BranchArrows({ message, what }: { message: Message; what: "wording" | "answer" }) {
  const all = siblings(openState.value?.messages ?? [], message);
  if (all.length < 2) return null;
  const at = all.findIndex((one) => one.id === message.id);
  const isBusy = runningTurn.value !== null;
  const go = (step: number) => {
    const next = all[at + step];
    if (next) void showBranch(next.id);
  };
  return (
    <span class="branch-arrows" role="group" aria-label={t.versions[what]}>
      <button
        type="button"
        class="copy-button"
        aria-label={t.earlier[what]}
        disabled={at <= 0 || isBusy}
        onClick={() => go(-1)}
      >
        <Icon name="chevronLeft" />
      </button>
      <span class="tabular-nums">
        <span class="sr-only">{t.version[what]} </span>
        {at + 1}/{all.length}
      </span>
      <button
        type="button"
        class="copy-button"
        aria-label={t.later[what]}
        disabled={at >= all.length - 1 || isBusy}
        onClick={() => go(1)}
      >
        <Icon name="chevronRight" />
      </button>
    </span>
  );
}

/** A question being worded anew: Ctrl+Enter asks, Escape leaves it. */
export function MessageEditor({ message, onClose }: { message: Message; onClose: () => void }) {
  const field = useRef<HTMLTextAreaElement>(null);
  const [text, setText] = useState(message.text);
  const [isBusy, setBusy] = useState(false);
  useEffect(() => {
    field.current?.focus();
    field.current?.setSelectionRange(message.text.length, message.text.length);
  }, []);
  const ask = async () => {
    if (text.trim() === "" || isBusy) return;
    setBusy(true);
    if (await editMessage(message.id, text.trim())) onClose();
    else setBusy(false);
  };
  return (
    <form
      class="message-editor"
      onSubmit={(event) => {
        event.preventDefault();
        void ask();
      }}
    >
      <label class="sr-only" for={`edit-${message.id}`}>
        {t.editedQuestion}
      </label>
      <textarea
        ref={field}
        id={`edit-${message.id}`}
        rows={Math.min(12, text.split("\n").length + 1)}
        value={text}
        onInput={(event) => setText(event.currentTarget.value)}
        onKeyDown={(event) => {
          if (event.key === "Escape") onClose();
          else if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
            event.preventDefault();
            void ask();
          }
        }}
      />
      <div class="flex flex-wrap items-center justify-end gap-2">
        <span class="grow text-xs text-(--quiet)">{t.earlierKept}</span>
        <button type="button" class="btn btn-quiet btn-sm" onClick={onClose}>
          {common.cancel}
        </button>
        <button type="submit" class="btn btn-primary btn-sm" disabled={isBusy || text.trim() === ""}>
          {t.askAgain}
        </button>
      </div>
    </form>
  );
}
