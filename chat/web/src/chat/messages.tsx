import { Fragment, type RefObject } from "preact";
import { memo } from "preact/compat";
import { useState } from "preact/hooks";
import { openState, openTimeline, runningTurn } from "../app";
import { pathTo } from "../store/paths";
import type { AnswerItem } from "../store/timeline";
import t from "../texts/chat";
import common from "../texts/common";
import { CopyButton } from "../ui/copy";
import { Icon } from "../ui/icon";
import { clockTime } from "../ui/time";
import { usageWords } from "../ui/usage-words";
import type { Message } from "../wire";
import { AnswerActions, CopyAnswer, RatingForm } from "./answer-actions";
import { AnswerBody, isDone, messagesOf, textOf } from "./answer-body";
import { AttachmentChips } from "./attachment-chips";
import { BranchArrows, MessageEditor } from "./branches";
import { Comparison } from "./comparison";
import { namedBud } from "./mentions";
import { OlderMessages } from "./older";
import { OutgoingMessage } from "./outgoing";
import { SummaryCard } from "./summary-card";

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

function Answer({ item }: { item: AnswerItem }) {
  const conversation = openState.value?.conversation;
  const { turn, first, last } = item;
  const named = turn?.bud_id ? namedBud(turn.bud_id) : null;
  const name = named?.name ?? conversation?.bud.name ?? t.assistant;
  const isWhole = isDone(item);
  const text = textOf(item);
  return (
    <article class="answer" aria-label={name} aria-busy={!isWhole} data-messages={messagesOf(item)}>
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
        <AnswerBody item={item} />
        {isWhole && turn && <RatingForm turn={turn} />}
        {isWhole && turn && (
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
        if (item.kind === "comparison") return <Comparison key={item.key} item={item} />;
        if (item.kind === "outgoing") return <OutgoingMessage key={item.key} outgoing={item.outgoing} />;
        return <Answer key={item.key} item={item} />;
      })}
    </>
  );
}
