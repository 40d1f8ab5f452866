import { Fragment, type RefObject } from "preact";
import { memo } from "preact/compat";
import { useState } from "preact/hooks";
import { openState, openTimeline, runningTurn } from "../app";
import { retryTurn } from "../commands";
import { Markdown } from "../markdown/markdown";
import { pathTo } from "../store/paths";
import type { TimelineItem } from "../store/timeline";
import t from "../texts/chat";
import common from "../texts/common";
import { CopyButton } from "../ui/copy";
import { Icon } from "../ui/icon";
import { clockTime } from "../ui/time";
import type { Message, Turn } from "../wire";
import { AnswerActions, ContinueButton, CopyAnswer, RatingForm } from "./answer-actions";
import { AttachmentChips } from "./attachment-chips";
import { BranchArrows, MessageEditor } from "./branches";
import { citeBlock } from "./citations";
import { LooseQuestions } from "./input-card";
import { namedBud } from "./mentions";
import { OlderMessages } from "./older";
import { OutgoingMessage } from "./outgoing";
import { Reasoning } from "./reasoning";
import { SummaryCard } from "./summary-card";
import { ToolCalls } from "./tool-call";
import { usageWords } from "./usage";

const UserMessage = memo(({ message }: { message: Message }) => {
  const [isEditing, setEditing] = useState(false);
  return (
    <article class="user-message" aria-label={t.you} data-messages={message.id}>
      <h2 class="sr-only">{t.youSaid}</h2>
      {isEditing ? (
        <MessageEditor message={message} onClose={() => setEditing(false)} />
      ) : (
        message.text && (
          <div class="bubble" title={clockTime(message.created_at)}>
            {message.text}
          </div>
        )
      )}
      <AttachmentChips attachments={message.attachments} conversationId={message.conversation_id} />
      {!isEditing && (
        <div class="message-actions justify-end">
          <BranchArrows message={message} what="wording" />
          <CopyButton text={() => message.text} />
          <button
            type="button"
            class="copy-button"
            disabled={runningTurn.value !== null}
            title={t.editQuestion}
            onClick={() => setEditing(true)}
          >
            <Icon name="pencil" />
            {common.edit}
          </button>
        </div>
      )}
    </article>
  );
});

const TextSegment = memo(({ message }: { message: Message }) => (
  <>
    {message.reasoning && <Reasoning message={message} />}
    {message.text && (
      <Markdown text={message.text} isStreaming={message.status === "streaming"} onSettled={citeBlock} />
    )}
  </>
));

function Thinking() {
  return (
    <div class="thinking" role="status">
      <span class="thinking-dots" aria-hidden="true">
        <span />
        <span />
        <span />
      </span>
      <span class="sr-only">{t.thinking}</span>
    </div>
  );
}

function TurnEnd({ turn, canRetry }: { turn: Turn; canRetry: boolean }) {
  const retry = canRetry && (turn.error ? turn.error.can_retry : true);
  const button = retry && (
    <button type="button" class="btn btn-sm btn-outline-quiet" onClick={() => retryTurn(turn.id)}>
      <Icon name="refresh" />
      {t.retry}
    </button>
  );
  const notice = turn.notice && (
    <div class="notice" data-tone="info">
      <Icon name="info" />
      <span>{turn.notice}</span>
    </div>
  );
  if (turn.status === "failed" || turn.status === "interrupted") {
    const text = turn.error?.message ?? (turn.status === "interrupted" ? t.interrupted : t.notCompleted);
    return (
      <>
        {notice}
        <div class="notice items-center" data-tone="bad" role="alert">
          <Icon name="alert" />
          <span class="grow">{text}</span>
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

function Answer({ item }: { item: TimelineItem & { kind: "answer" } }) {
  const conversation = openState.value?.conversation;
  const { turn, segments } = item;
  const named = turn?.bud_id ? namedBud(turn.bud_id) : null;
  const name = named?.name ?? conversation?.bud.name ?? t.assistant;
  const isDone = turn === null || turn.finished_at !== null || turn.status === "completed";
  const text = segments.flatMap((s) => (s.kind === "text" ? [s.message.text] : [])).join("\n\n");
  const { first, last } = item;
  return (
    <article
      class="answer"
      aria-label={name}
      aria-busy={!isDone}
      data-messages={segments
        .flatMap((s) =>
          s.kind === "text" ? [...(s.earlier ?? []), s.message.id] : s.calls.map((call) => call.message_id),
        )
        .join(" ")}
    >
      <h2 class="sr-only">{t.said(name)}</h2>
      <span class="avatar-tile answer-avatar" aria-hidden="true">
        {named?.avatar ?? (conversation?.bud.avatar || "🌱")}
      </span>
      <div class="answer-body">
        {named && (
          <p class="answer-who" aria-hidden="true">
            {named.name}
          </p>
        )}
        {segments.map((segment) =>
          segment.kind === "text" ? (
            <TextSegment key={segment.key} message={segment.message} />
          ) : (
            <ToolCalls key={segment.key} calls={segment.calls} />
          ),
        )}
        {turn && item.isLast && <LooseQuestions turn={turn} />}
        {item.isThinking && <Thinking />}
        {turn && <TurnEnd turn={turn} canRetry={item.isLast} />}
        {isDone && turn && item.isLast && last?.is_cut && <ContinueButton turn={turn} />}
        {isDone && turn && <RatingForm turn={turn} />}
        {isDone && turn && (
          <div class="message-actions" data-rated={turn.rating ?? undefined}>
            {first && <BranchArrows message={first} what="answer" />}
            {text && <CopyAnswer text={text} />}
            <AnswerActions turn={turn} last={last} text={text} />
            {turn.usage && (
              <span class="usage-words" title={t.usageTitle}>
                {usageWords(turn.usage)}
              </span>
            )}
          </div>
        )}
      </div>
    </article>
  );
}

export function MessageList({ scroller }: { scroller: RefObject<HTMLElement | null> }) {
  const state = openState.value;
  const byId = new Map(state?.messages.map((message) => [message.id, message]));
  const first = state && pathTo(state.messages, state.conversation?.leaf_id ?? null)[0];
  return (
    <>
      {first && first.parent_id !== null && <OlderMessages first={first} scroller={scroller} />}
      {openTimeline.value.map((item) => {
        if (item.kind === "user") {
          const above = byId.get(item.message.parent_id ?? "");
          return (
            <Fragment key={item.key}>
              {above?.summary && <SummaryCard key={above.id} message={above} summary={above.summary} />}
              <UserMessage message={item.message} />
            </Fragment>
          );
        }
        if (item.kind === "outgoing") return <OutgoingMessage key={item.key} outgoing={item.outgoing} />;
        return <Answer key={item.key} item={item} />;
      })}
    </>
  );
}
