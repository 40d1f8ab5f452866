/** What an answer shows beneath its name: its texts, its calls, what it asks, and how it ended. */
import { memo } from "preact/compat";
import { useCallback } from "preact/hooks";
import { boot } from "../../app/boot";
import { isShutOut } from "../../app/connection";
import { Markdown } from "../../markdown/markdown";
import { retryTurn } from "../../store/commands";
import type { AnswerItem } from "../../store/timeline";
import t from "../../texts/chat";
import { Icon } from "../../ui/icon";
import type { Message, Turn } from "../../wire";
import { LooseQuestions } from "../calls/input-card";
import { ToolCalls } from "../calls/tool-call";
import { ContinueButton } from "./answer-actions";
import { citeBlock } from "./citations";
import { Reasoning } from "./reasoning";

/** All that it says, without its calls. */
export const textOf = ({ segments }: AnswerItem): string =>
  segments.flatMap((s) => (s.kind === "text" ? [s.message.text] : [])).join("\n\n");

/** The ids of its messages, by which one is found that is looked for. */
export const messagesOf = ({ segments }: AnswerItem): string =>
  segments
    .flatMap((s) =>
      s.kind === "text" ? [...(s.earlier ?? []), s.message.id] : s.calls.map((call) => call.message_id),
    )
    .join(" ");

export const isDone = ({ turn }: AnswerItem): boolean =>
  turn === null || turn.finished_at !== null || turn.status === "completed";

const TextSegment = memo(({ message, bud }: { message: Message; bud: string | null }) => {
  const cite = useCallback((block: HTMLElement) => citeBlock(block, bud), [bud]);
  return (
    <>
      {message.reasoning && <Reasoning message={message} />}
      {message.text && (
        <Markdown text={message.text} isStreaming={message.status === "streaming"} onSettled={cite} />
      )}
    </>
  );
});

function Thinking() {
  return (
    <div class="thinking">
      <span class="thinking-dots" aria-hidden="true">
        <span />
        <span />
        <span />
      </span>
      <span class="sr-only">{t.thinking}</span>
    </div>
  );
}

/** Why an answer failed; null: it did not. */
export function failureOf(turn: Turn): string | null {
  if (turn.status !== "failed" && turn.status !== "interrupted") return null;
  return turn.error?.message ?? (turn.status === "interrupted" ? t.interrupted : t.notCompleted);
}

interface TurnEndProps {
  turn: Turn;
  canRetry: boolean;
  isNoticeRepeated?: boolean;
}

export function TurnEnd({ turn, canRetry, isNoticeRepeated = false }: TurnEndProps) {
  const retry = canRetry && !isShutOut.value && (turn.error ? turn.error.can_retry : true);
  const button = retry && (
    <button type="button" class="btn btn-sm btn-outline-quiet" onClick={() => retryTurn(turn.id)}>
      <Icon name="refresh" />
      {t.retry}
    </button>
  );
  // Whoever manages models can put it right at once.
  const isKey = turn.error?.code === "provider_key_refused" || turn.error?.code === "provider_key_unreadable";
  const providers = isKey ? boot.urls.providers : null;
  const notice = turn.notice && !isNoticeRepeated && (
    <div class="notice" data-tone="info">
      <Icon name="info" />
      <span>{turn.notice}</span>
    </div>
  );
  const failure = failureOf(turn);
  if (failure !== null) {
    // No alert: where a chat is opened, each failed answer in it would be read out.
    return (
      <>
        {notice}
        <div class="notice items-center" data-tone="bad">
          <Icon name="alert" />
          <span class="grow">{failure}</span>
          {providers && (
            <a class="btn btn-sm btn-outline-quiet" href={providers}>
              <Icon name="key" />
              {t.openProviders}
            </a>
          )}
          {button}
        </div>
      </>
    );
  }
  if (turn.status === "cancelled") {
    return (
      <>
        {notice}
        <p class="flex items-center gap-3 text-sm text-(--quiet)">
          {turn.error?.message ?? t.stopped} {button}
        </p>
      </>
    );
  }
  return notice || null;
}

export function AnswerBody({ item }: { item: AnswerItem }) {
  const { turn, segments } = item;
  return (
    <>
      {segments.map((segment) =>
        segment.kind === "text" ? (
          <TextSegment key={segment.key} message={segment.message} bud={turn?.bud_id ?? null} />
        ) : (
          <ToolCalls key={segment.key} calls={segment.calls} />
        ),
      )}
      {turn && item.isLast && <LooseQuestions turn={turn} />}
      {item.isThinking && <Thinking />}
      {turn && <TurnEnd turn={turn} canRetry={item.isLast} isNoticeRepeated={item.isNoticeRepeated} />}
      {isDone(item) && turn && item.isLast && item.last?.is_cut && <ContinueButton turn={turn} />}
    </>
  );
}
