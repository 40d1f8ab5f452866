/** What can be done with an answer that is complete: copied, heard, rated, written again, gone on from. */
import { signal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { isShutOut } from "../../app/connection";
import { toast } from "../../app/toasts";
import { canRead, readAloud, readingAloud, stopReading } from "../../browser/speech";
import { renderText } from "../../markdown/render";
import { continueTurn, forkFrom, rateTurn, regenerate } from "../../store/commands";
import { isBusyOrShut, openState } from "../../store/open-conversation";
import { sharing } from "../../store/sharing";
import t from "../../texts/answers";
import chat from "../../texts/chat";
import common from "../../texts/common";
import compareTexts from "../../texts/comparing";
import sharingTexts from "../../texts/sharing";
import { CopyButton } from "../../ui/copy";
import { copyText } from "../../ui/copy-text";
import { Icon } from "../../ui/icon";
import { forgetKept, useKept } from "../../ui/kept";
import { Menu, MenuButton } from "../../ui/menu";
import { useRefocus } from "../../ui/refocus";
import type { Message, Rating, Turn, Wish } from "../../wire";
import { answeringBud, loadModels, models } from "../composer/choice";
import { factsOf, otherModels } from "../composer/choices";
import { comparing } from "../composer/comparing";
import { plainText } from "./plain";

async function copyRich(text: string): Promise<void> {
  const part = (type: string, content: string) => new Blob([content], { type });
  const item = new ClipboardItem({
    "text/html": part("text/html", renderText(text)),
    "text/plain": part("text/plain", plainText(text)),
  });
  try {
    await navigator.clipboard.write([item]);
    toast(common.copied, "ok");
  } catch {
    toast(common.copyBlocked, "bad");
  }
}

/** Of an answer beside others there is no `last`: it is not on the path that is shared. */
export function CopyAnswer({ text, last }: { text: string; last?: Message | undefined }) {
  const row = openState.value?.conversation;
  const copy = async (words: string) => {
    if (await copyText(words)) toast(common.copied, "ok");
  };
  return (
    <span class="action-pair">
      <CopyButton text={() => text} />
      <Menu label={t.copyAs} buttonClass="copy-button" button={<Icon name="chevronDown" />}>
        <MenuButton icon="code" onClick={() => void copy(text)}>
          {t.asMarkdown}
        </MenuButton>
        {typeof ClipboardItem !== "undefined" && (
          <MenuButton icon="fileText" onClick={() => void copyRich(text)}>
            {t.asRichText}
          </MenuButton>
        )}
        <MenuButton icon="file" onClick={() => void copy(plainText(text))}>
          {t.asPlainText}
        </MenuButton>
        {row && last && (
          <>
            <div class="menu-line" />
            <MenuButton
              icon="share"
              onClick={() => {
                sharing.value = { row, until: last.id };
              }}
            >
              {sharingTexts.shareHere}
            </MenuButton>
          </>
        )}
      </Menu>
    </span>
  );
}

const WISHES: [Wish & keyof typeof t.wishes, "minimize" | "maximize" | "sprout"][] = [
  ["shorter", "minimize"],
  ["longer", "maximize"],
  ["simpler", "sprout"],
];

/** Of models in the menu; a dialog has the others, and looks for them by name. */
const MOST_MODELS = 8;

export function OtherModels({ turn, canCompare }: { turn: Turn; canCompare: boolean }) {
  useEffect(() => {
    if (!models.value) void loadModels();
  }, []);
  if (answeringBud.value?.is_model_fixed) return null;
  const others = otherModels(models.value ?? [], turn.model);
  if (others.length === 0) return null;
  return (
    <>
      {canCompare && (
        <MenuButton
          icon="columns"
          onClick={() => {
            comparing.value = { turn };
          }}
        >
          {compareTexts.compareWith}
        </MenuButton>
      )}
      <p class="menu-heading">{t.withModel}</p>
      {others.slice(0, MOST_MODELS).map(({ provider_id, name, provider_name, ...model }) => (
        <MenuButton
          key={`${provider_id}/${name}`}
          icon="sparkles"
          onClick={() => regenerate(turn.id, { model: { provider_id, name } })}
        >
          {name}
          <span class="block text-xs text-(--quiet)">
            {[provider_name, ...factsOf({ provider_id, name, provider_name, ...model })].join(" · ")}
          </span>
        </MenuButton>
      ))}
      {others.length > MOST_MODELS && (
        <MenuButton
          icon="search"
          onClick={() => {
            comparing.value = { turn, isInPlace: true };
          }}
        >
          {t.moreModels}
        </MenuButton>
      )}
    </>
  );
}

/** The rating whose reason is being written. */
const reasoned = signal<{ turnId: string; rating: Rating } | null>(null);

function Thumb({ turn, rating }: { turn: Turn; rating: "good" | "bad" }) {
  const isOn = turn.rating === rating;
  return (
    <button
      type="button"
      class="copy-button"
      disabled={isShutOut.value}
      aria-pressed={isOn}
      aria-label={t.rate[rating]}
      title={isOn ? t.takeBack : t.rate[rating]}
      onClick={async () => {
        const done = await rateTurn(turn.id, isOn ? "" : rating);
        if (done) reasoned.value = isOn ? null : { turnId: turn.id, rating };
      }}
    >
      <Icon name={rating === "good" ? "thumbsUp" : "thumbsDown"} />
    </button>
  );
}

/** Why: asked after the rating, which counts without it. */
export function RatingForm({ turn }: { turn: Turn }) {
  const wanted = reasoned.value;
  if (wanted?.turnId !== turn.id) return null;
  return <ReasonForm key={wanted.rating} turn={turn} rating={wanted.rating} />;
}

function ReasonForm({ turn, rating }: { turn: Turn; rating: Rating }) {
  const form = useRef<HTMLFormElement>(null);
  const field = useRef<HTMLTextAreaElement>(null);
  const [reason, setReason] = useKept(`rating.${turn.id}`, () => "");
  useRefocus(form);
  useEffect(() => field.current?.focus({ preventScroll: true }), []);
  const close = () => {
    reasoned.value = null;
    forgetKept(`rating.${turn.id}`);
  };
  const send = async () => {
    if (reason.trim() === "" || (await rateTurn(turn.id, rating, reason.trim()))) {
      close();
      toast(t.thanks, "ok");
    }
  };
  return (
    <form
      ref={form}
      class="message-editor"
      onSubmit={(event) => {
        event.preventDefault();
        void send();
      }}
    >
      <label class="text-sm" for={`why-${turn.id}`}>
        {rating === "good" ? t.whyGood : t.whyBad}
      </label>
      <textarea
        ref={field}
        id={`why-${turn.id}`}
        rows={2}
        maxLength={1000}
        value={reason}
        onInput={(event) => setReason(event.currentTarget.value)}
        onKeyDown={(event) => {
          if (event.key === "Escape") close();
          else if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
            event.preventDefault();
            void send();
          }
        }}
      />
      <div class="flex flex-wrap items-center justify-end gap-2">
        <span class="grow text-xs text-(--quiet)">{t.whoSees}</span>
        <button type="button" class="btn btn-quiet btn-sm" onClick={close}>
          {t.noReason}
        </button>
        <button type="submit" class="btn btn-primary btn-sm" disabled={reason.trim() === ""}>
          {t.sendReason}
        </button>
      </div>
    </form>
  );
}

export function ContinueButton({ turn }: { turn: Turn }) {
  return (
    <p>
      <button
        type="button"
        class="btn btn-sm btn-outline-quiet"
        disabled={isBusyOrShut.value}
        onClick={() => continueTurn(turn.id)}
      >
        <Icon name="arrowDown" />
        {t.goOn}
      </button>
    </p>
  );
}

export function ForkButton({ message }: { message: Message }) {
  return (
    <button
      type="button"
      class="copy-button"
      disabled={isShutOut.value}
      title={chat.forkTitle}
      onClick={() => forkFrom(message.id)}
    >
      <Icon name="fork" />
      <span class="max-[40rem]:sr-only">{chat.fork}</span>
    </button>
  );
}

export function AnswerActions(props: { turn: Turn; last: Message | undefined; text: string }) {
  const { turn, last, text } = props;
  const isBusy = isBusyOrShut.value;
  const isRead = readingAloud.value === turn.id;
  // Once another chat or branch is shown, no button could stop it.
  useEffect(
    () => () => {
      if (readingAloud.peek() === turn.id) stopReading();
    },
    [turn.id],
  );
  return (
    <>
      <span class="action-pair">
        <button
          type="button"
          class="copy-button"
          disabled={isBusy}
          title={chat.answerAgainTitle}
          onClick={() => regenerate(turn.id)}
        >
          <Icon name="refresh" />
          <span class="max-[40rem]:sr-only">{chat.answerAgain}</span>
        </button>
        {!isBusy && (
          <Menu label={t.answerOtherwise} buttonClass="copy-button" button={<Icon name="chevronDown" />}>
            {text &&
              WISHES.map(([wish, icon]) => (
                <MenuButton key={wish} icon={icon} onClick={() => regenerate(turn.id, { wish })}>
                  {t.wishes[wish]}
                </MenuButton>
              ))}
            <OtherModels turn={turn} canCompare={last !== undefined} />
          </Menu>
        )}
      </span>
      {last && <ForkButton message={last} />}
      {text && canRead() && (
        <button
          type="button"
          class="copy-button"
          aria-pressed={isRead}
          aria-label={isRead ? t.stopReading : t.readAloud}
          title={isRead ? t.stopReading : t.readAloud}
          onClick={() =>
            isRead ? stopReading() : readAloud(turn.id, plainText(text), () => toast(t.readFailed, "bad"))
          }
        >
          <Icon name={isRead ? "close" : "volume"} />
        </button>
      )}
      <Thumb turn={turn} rating="good" />
      <Thumb turn={turn} rating="bad" />
    </>
  );
}
