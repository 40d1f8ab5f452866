import { useEffect } from "preact/hooks";
import { boot } from "../app/boot";
import { go, homePath } from "../app/place";
import { FilesButton } from "../artifacts/button";
import { ConversationMenu } from "../sidebar/row";
import { buds } from "../store/buds";
import { stopTurn } from "../store/commands";
import { list } from "../store/list";
import {
  openAgain,
  openExcerpt,
  openProblem,
  openState,
  openTimeline,
  runningTurn,
  runningTurns,
  showEnd,
  waiting,
} from "../store/open-conversation";
import { sharing } from "../store/sharing";
import { keepChat } from "../store/temporary";
import t from "../texts/chat";
import common from "../texts/common";
import comparing from "../texts/comparing";
import sharingTexts from "../texts/sharing";
import shell from "../texts/shell";
import { Icon } from "../ui/icon";
import { pageTitle } from "../waiting/state";
import type { Conversation } from "../wire";
import { isDemoAnswering } from "./composer/choices";
import { AnswerLine } from "./composer/chooser";
import { nameOfAnswer, openComparison } from "./composer/comparing";
import { Composer } from "./composer/composer";
import { QueuedMessages } from "./composer/queued";
import { QuoteButton } from "./composer/quote";
import { DemoLabel, Header, TemporaryLine } from "./header";
import { Loading } from "./loading";
import { endInWords, useEnded } from "./messages/ended";
import { useFollow } from "./messages/follow";
import { MessageList } from "./messages/messages";
import { useReveal } from "./messages/reveal";
import { useSeen } from "./messages/seen";
import { UsageGauge } from "./messages/usage";
import { sendMessage } from "./sending";

/** In a page that the browser kept. */
function NotHere() {
  return (
    <div class="empty-state">
      <Icon name="wifiOff" />
      <h2>{t.notHere}</h2>
      <p>{t.notHereText}</p>
    </div>
  );
}

function Problem({ text }: { text: string }) {
  return (
    <div class="empty-state">
      <Icon name="alert" />
      <h2>{t.cannotShow}</h2>
      <p>{text}</p>
      <div class="flex flex-wrap justify-center gap-2">
        {text !== shell.noAccess && (
          <button type="button" class="btn btn-outline-quiet btn-sm" onClick={() => void openAgain()}>
            {common.tryAgain}
          </button>
        )}
        <button type="button" class="btn btn-primary btn-sm" onClick={() => go(homePath)}>
          {t.startNew}
        </button>
      </div>
    </div>
  );
}

/** Where others may read the chat, it says so. On a phone the way to share one is in the menu, for want of room. */
function ShareButton({ row }: { row: Conversation }) {
  return (
    <button
      type="button"
      class={`btn btn-sm btn-quiet ${row.is_shared ? "" : "max-sm:hidden"}`}
      title={row.is_shared ? sharingTexts.sharedTitle : undefined}
      onClick={() => {
        sharing.value = { row };
      }}
    >
      <Icon name="share" />
      {row.is_shared && <span class="dot sm:hidden" data-tone="brand" />}
      <span class="max-sm:sr-only">{row.is_shared ? sharingTexts.shared : sharingTexts.share}</span>
    </button>
  );
}

/** Of which answer the next message goes on, where several stand side by side. */
function comparisonHint(): string | undefined {
  const kept = runningTurn.value === null ? openComparison.value?.kept?.turn : null;
  return kept?.status === "completed" ? comparing.hint(nameOfAnswer(kept).name) : undefined;
}

export function ConversationView({ id }: { id: string }) {
  const { scroller, content, isAway, jump } = useFollow(id, openExcerpt.value !== null);
  useReveal(scroller);
  useSeen(isAway);
  const state = openState.value;
  const conversation = state?.conversation;
  const isLoaded = state?.seq !== null && state !== null;
  const turn = runningTurn.value;
  const hasEnded = useEnded(id, isLoaded && turn !== null);
  // Until it has come, what the list knows of it.
  const known = conversation ?? list.value?.find((row) => row.id === id);
  const bud = buds.value?.find((b) => b.id === known?.bud.id);
  const chosen = known?.chosen_model;
  const isDemo = isDemoAnswering(bud, chosen, boot.demo_model);
  const model = chosen?.name ?? (bud && !bud.model.is_demo ? bud.model.name : undefined);
  const isNew = !boot.is_kept && openProblem.value === null;
  const title = known?.title || (isNew ? common.newChat : t.conversation);
  const isWaiting = waiting.value.length > 0;
  const isForAdmin = waiting.value.every((call) => call.approval?.needs_second_person);
  const isAsked = waiting.value.some((call) => call.status === "waiting_for_input");
  const isLost = waiting.value.some((call) => call.status === "outcome_unknown");

  useEffect(() => {
    pageTitle.value = t.pageTitle(title);
  }, [title]);

  return (
    <>
      <Header>
        {conversation && (
          <span class="avatar-tile avatar-small" aria-hidden="true">
            {conversation.bud.avatar || "🌱"}
          </span>
        )}
        <div class="chat-about">
          <h1 class="chat-title" dir="auto">
            {title}
          </h1>
          <div class="chat-facts">
            {conversation && <AnswerLine bud={conversation.bud.name} model={model} />}
            <div class="chat-badges">
              {conversation?.is_archived && (
                <span class="tag" data-tone="muted">
                  <Icon name="archive" />
                  {shell.archivedTag}
                </span>
              )}
              <UsageGauge />
              {isDemo && known && openProblem.value === null && <DemoLabel />}
            </div>
          </div>
        </div>
        {conversation && <FilesButton />}
        {conversation && state.messages.length > 0 && <ShareButton row={conversation} />}
        {conversation && <ConversationMenu row={conversation} />}
      </Header>
      {conversation?.is_temporary && (
        <TemporaryLine>
          <button type="button" class="link-brand" onClick={() => keepChat(id)}>
            {shell.keep}
          </button>
        </TemporaryLine>
      )}
      <div class="chat-scroll" ref={scroller}>
        <div
          class="chat-column"
          data-compares={openComparison.value !== null || undefined}
          ref={content}
          role="log"
          aria-label={t.conversation}
          aria-live="off"
        >
          {openProblem.value ? (
            <Problem text={openProblem.value} />
          ) : isLoaded || (state?.outgoing.length ?? 0) > 0 ? (
            <>
              {isLoaded && state.messages.length === 0 && state.outgoing.length === 0 && (
                <div class="empty-state">
                  <span class="avatar-tile" aria-hidden="true">
                    {conversation?.bud.avatar || "🌱"}
                  </span>
                  <h2>{conversation?.bud.name}</h2>
                  <p>{t.emptyText}</p>
                </div>
              )}
              <MessageList scroller={scroller} />
            </>
          ) : boot.is_kept ? (
            <NotHere />
          ) : (
            <Loading />
          )}
        </div>
      </div>
      {openProblem.value === null && <QuoteButton draftKey={id} />}
      <div class="chat-foot">
        {isAway && (
          <button
            type="button"
            class="btn btn-sm btn-outline-quiet jump"
            onClick={() => {
              const isFar = openExcerpt.value !== null;
              showEnd();
              jump(isFar || matchMedia("(prefers-reduced-motion: reduce)").matches ? "instant" : "smooth");
            }}
          >
            <Icon name="arrowDown" />
            {isWaiting ? t.waitingForYou : t.jumpToLatest}
          </button>
        )}
        <div class="sr-only" role="status">
          {isAsked
            ? t.isAsked
            : isLost
              ? t.isLost
              : isWaiting
                ? isForAdmin
                  ? t.isWaitingForAdmin
                  : t.isWaiting(waiting.value.filter((call) => !call.approval?.needs_second_person).length)
                : turn
                  ? t.isAnswering
                  : hasEnded
                    ? endInWords(openTimeline.value)
                    : ""}
        </div>
        {openProblem.value === null && (
          <>
            <QueuedMessages />
            <Composer
              draftKey={id}
              conversationId={conversation ? id : undefined}
              label={t.message}
              placeholder={conversation ? t.messageTo(conversation.bud.name) : t.message}
              isRunning={turn !== null}
              hint={
                isAsked
                  ? t.isAskedAbove
                  : isLost
                    ? t.isLostAbove
                    : isWaiting
                      ? isForAdmin
                        ? t.isWaitingForAdmin
                        : t.isWaitingAbove
                      : comparisonHint()
              }
              onSend={(text, whenBusy, asked) => {
                jump();
                return sendMessage(text, whenBusy, asked);
              }}
              onStop={async () =>
                (await Promise.all(runningTurns.value.map((one) => stopTurn(one.id)))).every(Boolean)
              }
            />
            <p class="chat-small">{t.smallPrint}</p>
          </>
        )}
      </div>
    </>
  );
}
