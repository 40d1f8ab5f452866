import type { RefObject } from "preact";
import { memo } from "preact/compat";
import { useState } from "preact/hooks";
import { place } from "../../app/place";
import { moment } from "../../formats";
import type { Group } from "../../store/groups";
import { isBusyOrShut, openBud, openExcerpt, openGroups, openTimeline } from "../../store/open-conversation";
import { type AnswerItem, firstMessage, type TimelineItem } from "../../store/timeline";
import t from "../../texts/chat";
import common from "../../texts/common";
import { CopyButton } from "../../ui/copy";
import { Icon } from "../../ui/icon";
import { usageWords } from "../../ui/usage-words";
import type { Message } from "../../wire";
import { AttachmentChips } from "../composer/attachment-chips";
import { namedBud } from "../composer/mentions";
import { AnswerActions, CopyAnswer, ForkButton, RatingForm } from "./answer-actions";
import { AnswerBody, isDone, messagesOf, textOf } from "./answer-body";
import { BranchArrows, isReworded, MessageEditor } from "./branches";
import { Bubble } from "./bubble";
import { Comparison } from "./comparison";
import { NewerMessages, OlderMessages } from "./older";
import { OutgoingMessage } from "./outgoing";
import { SummaryCard } from "./summary-card";

const UserMessage = memo(({ message, versions }: { message: Message; versions: readonly string[] }) => {
  const [isEditing, setEditing] = useState(() => isReworded(message));
  return (
    <article class="user-message" aria-label={t.you} data-messages={message.id}>
      <h2 class="sr-only">{t.youSaid}</h2>
      {isEditing ? (
        <MessageEditor message={message} onClose={() => setEditing(false)} />
      ) : (
        message.text && <Bubble id={message.id} text={message.text} title={moment(message.created_at)} />
      )}
      <AttachmentChips attachments={message.attachments} conversationId={message.conversation_id} />
      {!isEditing && (
        <div class="message-actions justify-end">
          <BranchArrows message={message} versions={versions} what="wording" />
          <CopyButton text={() => message.text} />
          <button
            type="button"
            class="copy-button"
            disabled={isBusyOrShut.value}
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

const Answer = memo(({ item }: { item: AnswerItem }) => {
  const { turn, first, last, versions } = item;
  const named = turn?.bud_id ? namedBud(turn.bud_id) : null;
  const name = named?.name ?? openBud.name.value ?? t.assistant;
  const isWhole = isDone(item);
  const text = textOf(item);
  return (
    <article class="answer" aria-label={name} aria-busy={!isWhole} data-messages={messagesOf(item)}>
      <h2 class="sr-only">{t.said(name)}</h2>
      <span class="avatar-tile answer-avatar" aria-hidden="true">
        {named?.avatar ?? (openBud.avatar.value || "🌱")}
      </span>
      <div class="answer-body">
        {named && (
          <p class="answer-who" aria-hidden="true">
            {named.name}
          </p>
        )}
        <AnswerBody item={item} />
        {isWhole && turn && <RatingForm turn={turn} />}
        {isWhole && !turn && text && (
          <div class="message-actions" data-newest={item.isLast || undefined}>
            {first && <BranchArrows message={first} versions={versions} what="answer" />}
            <CopyAnswer text={text} />
            {last && <ForkButton message={last} />}
          </div>
        )}
        {isWhole && turn && (
          <div
            class="message-actions"
            data-rated={turn.rating ?? undefined}
            data-newest={item.isLast || undefined}
          >
            {first && <BranchArrows message={first} versions={versions} what="answer" />}
            {text && <CopyAnswer text={text} last={last} />}
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
});

function Item({ item }: { item: TimelineItem }) {
  switch (item.kind) {
    case "user": {
      const { message, versions, summarised } = item;
      return (
        <>
          {summarised?.summary && <SummaryCard message={summarised} summary={summarised.summary} />}
          <UserMessage message={message} versions={versions} />
        </>
      );
    }
    case "comparison":
      return <Comparison item={item} />;
    case "outgoing":
      return <OutgoingMessage outgoing={item.outgoing} />;
    case "answer":
      return <Answer item={item} />;
  }
}

const MessageGroup = memo(({ items }: Group) => (
  <div class="message-group" style={{ "--items": items.length }}>
    {items.map((item) => (
      <Item key={item.key} item={item} />
    ))}
  </div>
));

export function MessageList({ scroller }: { scroller: RefObject<HTMLElement | null> }) {
  const first = firstMessage(openTimeline.value);
  return (
    <>
      {first && first.parent_id !== null && <OlderMessages first={first} scroller={scroller} />}
      {openGroups.value.map((group) => (
        <MessageGroup {...group} key={group.key} />
      ))}
      {openExcerpt.value && place.value && (
        <NewerMessages conversationId={place.value} last={openExcerpt.value} scroller={scroller} />
      )}
    </>
  );
}
