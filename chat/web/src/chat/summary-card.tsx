/** Where older messages were summarised: what the model reads in their place, to read, change and take back. */
import { useEffect, useRef, useState } from "preact/hooks";
import { changeSummary, runningTurn } from "../app";
import { Markdown } from "../markdown/markdown";
import common from "../texts/common";
import t from "../texts/summaries";
import { Icon } from "../ui/icon";
import type { Message, Summary } from "../wire";

export function SummaryCard({ message, summary }: { message: Message; summary: Summary }) {
  const [isEditing, setEditing] = useState(false);
  const edit = useRef<HTMLButtonElement>(null);
  const close = () => {
    setEditing(false);
    setTimeout(() => edit.current?.focus());
  };
  return (
    <section class="summary-card" aria-label={t.title} data-used={summary.is_used}>
      <details>
        <summary>
          <Icon name="listCollapse" class="text-(--quiet)" />
          <span class="min-w-0 grow">
            <span class="block font-medium">{t.title}</span>
            <span class="block text-xs text-(--quiet)">
              {summary.is_used ? t.about(summary.questions) : t.notUsed}
              {summary.is_edited && ` ${t.edited}`}
            </span>
          </span>
          <Icon name="chevronRight" class="summary-mark text-(--quiet)" />
        </summary>
        <div class="summary-body">
          {isEditing ? (
            <SummaryEditor message={message} summary={summary} onClose={close} />
          ) : (
            <>
              <Markdown key={summary.text} text={summary.text} isStreaming={false} />
              <div class="flex flex-wrap gap-2">
                <button
                  ref={edit}
                  type="button"
                  class="btn btn-sm btn-outline-quiet"
                  disabled={runningTurn.value !== null}
                  onClick={() => setEditing(true)}
                >
                  <Icon name="pencil" />
                  {t.edit}
                </button>
                <button
                  type="button"
                  class="btn btn-sm btn-quiet"
                  disabled={runningTurn.value !== null}
                  onClick={() => void changeSummary(message.id, { is_used: !summary.is_used })}
                >
                  {summary.is_used ? t.stopUsing : t.useAgain}
                </button>
              </div>
            </>
          )}
        </div>
      </details>
    </section>
  );
}

function SummaryEditor(props: { message: Message; summary: Summary; onClose: () => void }) {
  const { message, summary, onClose } = props;
  const field = useRef<HTMLTextAreaElement>(null);
  const [text, setText] = useState(summary.text);
  const [isBusy, setBusy] = useState(false);
  useEffect(() => field.current?.focus(), []);
  const save = async () => {
    if (text.trim() === "" || isBusy) return;
    setBusy(true);
    if (await changeSummary(message.id, { text: text.trim() })) onClose();
    else setBusy(false);
  };
  return (
    <form
      class="message-editor"
      onSubmit={(event) => {
        event.preventDefault();
        void save();
      }}
    >
      <label class="sr-only" for={`summary-${message.id}`}>
        {t.title}
      </label>
      <textarea
        ref={field}
        id={`summary-${message.id}`}
        rows={Math.min(16, text.split("\n").length + 3)}
        maxLength={8000}
        value={text}
        onInput={(event) => setText(event.currentTarget.value)}
        onKeyDown={(event) => {
          if (event.key === "Escape") onClose();
          else if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
            event.preventDefault();
            void save();
          }
        }}
      />
      <div class="flex flex-wrap items-center justify-end gap-2">
        <button type="button" class="btn btn-quiet btn-sm" onClick={onClose}>
          {common.cancel}
        </button>
        <button type="submit" class="btn btn-primary btn-sm" disabled={isBusy || text.trim() === ""}>
          {common.save}
        </button>
      </div>
    </form>
  );
}
