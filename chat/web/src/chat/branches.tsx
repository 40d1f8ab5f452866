/** Other wordings of a question, other answers to it: moving between them, making more, and going on elsewhere. */
import { openState, runningTurn } from "../app";
import { editMessage, showBranch } from "../commands";
import { siblings } from "../store/paths";
import t from "../texts/chat";
import { Icon } from "../ui/icon";
import { TextEditor } from "../ui/text-editor";
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
  return (
    <TextEditor
      id={`edit-${message.id}`}
      label={t.editedQuestion}
      text={message.text}
      moreRows={1}
      mostRows={12}
      action={t.askAgain}
      note={t.earlierKept}
      save={(text) => editMessage(message.id, text)}
      onClose={onClose}
    />
  );
}
