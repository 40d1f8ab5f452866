/** Other wordings of a question, other answers to it: moving between them, making more, and going on elsewhere. */
import { signal } from "@preact/signals";
import { useLayoutEffect, useRef } from "preact/hooks";
import { editMessage, showBranch } from "../../store/commands";
import { isBusyOrShut } from "../../store/open-conversation";
import t from "../../texts/chat";
import { Icon } from "../../ui/icon";
import { TextEditor } from "../../ui/text-editor";
import type { Message } from "../../wire";

/** Which version was asked for, and with which button. That button goes with the version that it stood at. */
let asked: { id: string; step: number } | null = null;

/** So many before and after the one that is shown are known. Of more, nobody here knows the number. */
const MOST_KNOWN = 100;

/** `‹ 2/3 ›`; nothing where there is only one. */
export function BranchArrows({
  message,
  versions,
  what,
}: {
  message: Message;
  /** The ids of all that stand in its place. */
  versions: readonly string[];
  what: "wording" | "answer";
}) {
  const group = useRef<HTMLSpanElement>(null);
  // Whoever uses the keyboard goes on with the same button, or at the end with the other one.
  useLayoutEffect(() => {
    if (!group.current || asked?.id !== message.id) return;
    const buttons = [...group.current.querySelectorAll("button")];
    if (asked.step > 0) buttons.reverse();
    asked = null;
    if (document.activeElement === document.body)
      buttons.find((one) => !one.disabled)?.focus({ preventScroll: true });
  });
  if (versions.length < 2) return null;
  const at = versions.indexOf(message.id);
  const isBusy = isBusyOrShut.value;
  const go = (step: number) => {
    const next = versions[at + step];
    if (!next) return;
    asked = { id: next, step };
    void showBranch(next);
  };
  return (
    <span ref={group} class="branch-arrows" role="group" aria-label={t.versions[what]}>
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
        {versions.length > MOST_KNOWN ? t.manyVersions : `${at + 1}/${versions.length}`}
      </span>
      <button
        type="button"
        class="copy-button"
        aria-label={t.later[what]}
        disabled={at >= versions.length - 1 || isBusy}
        onClick={() => go(1)}
      >
        <Icon name="chevronRight" />
      </button>
    </span>
  );
}

/** Questions that are being worded anew, by their ids. They outlive that another branch or chat is shown for a while. */
const wordings = signal<Readonly<Record<string, string>>>({});

export const isReworded = (message: Message): boolean => message.id in wordings.value;

function keepWording(id: string, text: string): void {
  wordings.value = { ...wordings.value, [id]: text };
}

function leaveWording(id: string): void {
  const { [id]: _, ...others } = wordings.value;
  wordings.value = others;
}

/** A question being worded anew: Ctrl+Enter asks, Escape leaves it. */
export function MessageEditor({ message, onClose }: { message: Message; onClose: () => void }) {
  const { id } = message;
  return (
    <TextEditor
      kept={wordings.peek()[id]}
      onType={(text) => keepWording(id, text)}
      id={`edit-${message.id}`}
      label={t.editedQuestion}
      text={message.text}
      moreRows={1}
      mostRows={12}
      action={t.askAgain}
      note={t.earlierKept}
      save={(text) => editMessage(id, text)}
      onClose={() => {
        leaveWording(id);
        onClose();
      }}
    />
  );
}
