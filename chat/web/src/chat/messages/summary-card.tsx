/** Where older messages were summarised: what the model reads in their place, to read, change and take back. */
import { useRef, useState } from "preact/hooks";
import { Markdown } from "../../markdown/markdown";
import { changeSummary } from "../../store/commands";
import { isBusyOrShut } from "../../store/open-conversation";
import common from "../../texts/common";
import t from "../../texts/summaries";
import { Icon } from "../../ui/icon";
import { TextEditor } from "../../ui/text-editor";
import type { Message, Summary } from "../../wire";

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
                  disabled={isBusyOrShut.value}
                  onClick={() => setEditing(true)}
                >
                  <Icon name="pencil" />
                  {t.edit}
                </button>
                <button
                  type="button"
                  class="btn btn-sm btn-quiet"
                  disabled={isBusyOrShut.value}
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
  return (
    <TextEditor
      id={`summary-${props.message.id}`}
      label={t.title}
      text={props.summary.text}
      moreRows={3}
      mostRows={16}
      maxLength={8000}
      action={common.save}
      save={(text) => changeSummary(props.message.id, { text })}
      onClose={props.onClose}
    />
  );
}
