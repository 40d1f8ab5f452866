import { createPortal } from "preact/compat";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { boot } from "../../app/boot";
import { mayBeginTyping } from "../../app/focus";
import { toast } from "../../app/toasts";
import { sizeWord } from "../../artifacts/words";
import { openLayer } from "../../browser/layers";
import { canDictate } from "../../browser/speech";
import { whole } from "../../formats";
import { isSearchOpen, newChat } from "../../sidebar/opening";
import { buds } from "../../store/buds";
import type { Asked } from "../../store/conversation";
import { draftOf, useDraft } from "../../store/draft";
import { isTooLong } from "../../store/lengths";
import { picked, takeAlong } from "../../store/picked";
import t from "../../texts/chat";
import compareTexts from "../../texts/comparing";
import { chooseFiles } from "../../ui/choose-files";
import { Icon } from "../../ui/icon";
import { Menu, MenuButton } from "../../ui/menu";
import { isTouch, toComposer, useRefocus } from "../../ui/refocus";
import type { Prompt, WhenBusy } from "../../wire";
import { askAgain, askedBy, dropAsked } from "./asked";
import { PickedChips } from "./attachment-chips";
import { answeringBud, chooser } from "./choice";
import type { CommandName } from "./choices";
import { ChoiceChip } from "./chooser";
import { comparing } from "./comparing";
import { DictateButton } from "./dictate-button";
import { GoneBud } from "./gone-bud";
import { mention } from "./mentions";
import { MissingServer } from "./missing-server";
import { OFFERS_ID, type Offer, OfferMenu, offerId, useOffers } from "./offers";
import { PromptDialog } from "./prompt-dialog";
import { ResourcePicker } from "./resource-picker";
import { ServerPicker } from "./server-picker";
import { withoutTyped } from "./typed";
import { mayTryAgain, takeFiles, uploadsOf } from "./uploads";

interface ComposerProps {
  /** Under which name the draft is kept. */
  draftKey: string;
  placeholder: string;
  label: string;
  isRunning?: boolean;
  /** There is nobody to write to. */
  isDisabled?: boolean;
  /** Whoever answers is on their way: one can write, and not send yet. */
  isWaiting?: boolean;
  /** `whenBusy`: what shall become of it while an answer is being written. `asked`: who answers it this once. */
  /** False: it was not taken, and stands in the field again. */
  onSend: (text: string, whenBusy: WhenBusy, asked: Asked) => Promise<boolean | void>;
  /** False: something goes on, so that one can ask again. */
  onStop?: () => Promise<boolean>;
  hint?: string;
  /** Absent: the conversation begins with the next message. */
  conversationId?: string;
}

export function Composer(props: ComposerProps) {
  const { draftKey, isRunning = false, isDisabled = false, isWaiting = false, onSend, onStop } = props;
  const field = useRef<HTMLTextAreaElement>(null);
  const [text, setText] = useDraft(draftKey);
  const [isStopping, setStopping] = useState(false);
  /** It was to be sent while nobody could answer yet. */
  const [isWanted, setWanted] = useState(false);
  const [dialog, setDialog] = useState<"resources" | "servers" | Prompt | null>(null);
  /** Where somebody is in words that were written here; words from another device open no menu. */
  const [caret, setCaret] = useState({ of: "", at: 0 });
  const offers = useOffers(props.conversationId, text, caret.of === text ? caret.at : null);
  /** What stood here before the menu put a sign in, and what it made of that. */
  const begun = useRef({ before: "", after: "" });
  const hasOffers = offers.shown !== null;
  const leaveOffers = useRef(offers.dismiss);
  leaveOffers.current = () => {
    offers.dismiss();
    if (text === begun.current.after) setText(begun.current.before);
  };
  useEffect(() => {
    if (!hasOffers) return;
    const leave = () => leaveOffers.current();
    const pressed = ({ target }: Event) => {
      if (!(target instanceof Element) || !target.closest(`#composer-text, #${OFFERS_ID}`)) leave();
    };
    document.addEventListener("pointerdown", pressed);
    const closed = isTouch() ? openLayer(leave) : undefined;
    return () => {
      closed?.();
      document.removeEventListener("pointerdown", pressed);
    };
  }, [hasOffers]);

  useEffect(() => {
    if (!isTouch() && mayBeginTyping()) field.current?.focus({ preventScroll: true });
  }, [draftKey, isDisabled]);
  useEffect(() => {
    if (!isRunning) setStopping(false);
  }, [isRunning]);
  useLayoutEffect(() => {
    const area = field.current;
    if (!area || CSS.supports("field-sizing", "content")) return;
    area.style.height = "auto";
    area.style.height = `${Math.min(area.scrollHeight, innerHeight * 0.4)}px`;
  }, [text]);

  const uploads = uploadsOf(draftKey);
  const isUploading = uploads.some((one) => one.progress !== null);
  const hasFailed = uploads.some((one) => one.error !== "");
  const hasFiles = uploads.length > 0 || (picked.value[draftKey]?.length ?? 0) > 0;
  const isReady = !isDisabled && !isUploading && !hasFailed && (text.trim() !== "" || hasFiles);
  const canSend = isReady && !isWaiting;
  const take = (files: Iterable<File>) => {
    const areTaken = takeFiles(draftKey, props.conversationId, files);
    field.current?.focus({ preventScroll: true });
    return areTaken;
  };
  /** What was typed meanwhile stays too. */
  const putBack = (words: string) => setText([words, draftOf(draftKey)].filter(Boolean).join("\n\n"));
  /** Words that are too long for a message stay in their field until the file that they became is there. */
  const attach = async () => {
    const words = draftOf(draftKey);
    const file = new File([words], t.textFile, { type: "text/plain" });
    if (!(await take([file])) || draftOf(draftKey) !== words) return;
    setText("");
    toast(t.textAttached, "ok", { label: t.putBack, run: () => putBack(words) });
  };
  const send = (whenBusy: WhenBusy = "queue") => {
    if (!isReady) return;
    if (isWaiting) return setWanted(true);
    if (isTooLong(text.trim())) {
      const attachIt = { label: t.attachText, run: () => void attach() };
      return toast(t.tooLong(whole(boot.max_message_characters)), "bad", attachIt);
    }
    const words = text;
    const asked = askedBy(draftKey);
    setText("");
    dropAsked(draftKey);
    // The button that was pressed has nothing to send any more, and would lose the focus.
    if (!isTouch()) field.current?.focus({ preventScroll: true });
    void onSend(words, whenBusy, asked).then((isTaken) => {
      if (isTaken !== false) return;
      putBack(words);
      askAgain(draftKey, asked);
    });
  };
  useEffect(() => {
    if (!isWanted || isWaiting) return;
    setWanted(false);
    send();
  }, [isWanted, isWaiting]);
  const run = (name: CommandName) => {
    if (name === "bud") chooser.value = "buds";
    else if (name === "model") chooser.value = "models";
    else if (name === "compare") comparing.value = { draft: draftKey };
    else if (name === "tools") setDialog("servers");
    else if (name === "file") chooseFiles(take);
    else if (name === "search") isSearchOpen.value = true;
    else newChat(name === "temporary");
  };
  const choose = (offer: Offer) => {
    if (offers.typed) {
      const rest = withoutTyped(text, offers.typed);
      setText(rest);
      setCaret({ of: rest, at: Math.min(offers.typed.start, rest.length) });
    }
    if (offer.kind === "command") run(offer.name);
    else if (offer.kind === "prompt") setDialog(offer.prompt);
    else if (offer.kind === "bud") mention(draftKey, offer.bud);
    else takeAlong(draftKey, offer.one);
  };
  /** Begin to type after a sign, as somebody would who knows it; what is written already stays. */
  const type = (sign: string) => {
    const isFirst = sign === "/"; // a command stands at the beginning, a name at the end
    const before = isFirst || text === "" || text.endsWith(" ") ? text : `${text} `;
    const next = isFirst ? [sign, text].filter(Boolean).join(" ") : before + sign;
    const at = isFirst ? sign.length : next.length;
    begun.current = { before: text, after: next };
    setText(next);
    setCaret({ of: next, at });
    const area = field.current;
    area?.focus();
    // After the field has its new words.
    setTimeout(() => area?.setSelectionRange(at, at));
  };
  /** While the menu is open the keys are its; true where one was taken. */
  const walkOffers = (event: KeyboardEvent): boolean => {
    const { shown, at, setAt } = offers;
    if (shown === null) return false;
    if (event.key === "Escape") leaveOffers.current();
    else if (shown.length === 0) return false;
    else if (event.key === "ArrowDown") setAt((at + 1) % shown.length);
    else if (event.key === "ArrowUp") setAt((at - 1 + shown.length) % shown.length);
    else if (event.key === "Enter" || event.key === "Tab") {
      const offer = shown[at];
      if (!offer) return false;
      choose(offer);
    } else return false;
    event.preventDefault();
    return true;
  };
  return (
    <form
      class="composer"
      onSubmit={(event) => {
        event.preventDefault();
        send();
      }}
    >
      <label class="sr-only" for="composer-text">
        {props.label}
      </label>
      {offers.shown && offers.typed && (
        <OfferMenu
          shown={offers.shown}
          hasMore={offers.hasMore}
          typed={offers.typed}
          at={offers.at}
          onChoose={choose}
        />
      )}
      <GoneBud />
      <MissingServer text={text} conversationId={props.conversationId} />
      <PickedChips draftKey={draftKey} conversationId={props.conversationId} />
      <textarea
        ref={field}
        id="composer-text"
        aria-autocomplete="list"
        aria-controls={hasOffers ? OFFERS_ID : undefined}
        aria-activedescendant={hasOffers && offers.shown?.length ? offerId(offers.at) : undefined}
        rows={1}
        value={text}
        placeholder={props.placeholder}
        disabled={isDisabled}
        enterkeyhint={isTouch() ? "enter" : "send"}
        onInput={(event) => {
          const { value, selectionStart } = event.currentTarget;
          setWanted(false);
          setText(value);
          setCaret({ of: value, at: selectionStart });
        }}
        onSelect={(event) => setCaret({ of: text, at: event.currentTarget.selectionStart })}
        onPaste={(event) => {
          const files = event.clipboardData?.files;
          // What office programs copy has a picture beside its text: then the text is meant.
          if (!files?.length || event.clipboardData?.types.includes("text/plain")) return;
          event.preventDefault();
          take(files);
        }}
        onKeyDown={(event) => {
          if (walkOffers(event)) return;
          if (event.key === "Backspace" && text === "") {
            dropAsked(draftKey);
          }
          if (event.key !== "Enter" || event.shiftKey) return;
          // A phone's Enter makes a line, and its button sends. Whoever holds Ctrl has a keyboard.
          if (isTouch() && !event.ctrlKey && !event.metaKey) return;
          event.preventDefault();
          send(event.ctrlKey || event.metaKey ? "interrupt" : "queue");
        }}
      />
      <div class="composer-bar">
        {!boot.is_kept && (
          <Menu label={t.add} buttonClass="btn btn-sm btn-circle btn-quiet" button={<Icon name="plus" />}>
            <MenuButton icon="upload" onClick={() => chooseFiles(take)}>
              {t.addFile}
              <span class="block text-xs text-(--quiet)">{t.fileLimits(sizeWord(boot.max_file_bytes))}</span>
            </MenuButton>
            {isTouch() && (
              <MenuButton icon="fileImage" onClick={() => chooseFiles(take, true)}>
                {t.takePhoto}
              </MenuButton>
            )}
            <MenuButton icon="paperclip" onClick={() => setDialog("resources")}>
              {t.attachResource}
            </MenuButton>
            <MenuButton icon="slash" onClick={() => type("/")}>
              {t.usePrompt}
            </MenuButton>
            {(buds.value?.length ?? 0) > 1 && (
              <MenuButton icon="sprout" onClick={() => type("@")}>
                {t.askAnother}
              </MenuButton>
            )}
            <MenuButton icon="plug" onClick={() => setDialog("servers")}>
              {t.serversAndTools}
            </MenuButton>
            {!answeringBud.value?.is_model_fixed && (
              <MenuButton
                icon="columns"
                onClick={() => {
                  comparing.value = { draft: draftKey };
                }}
              >
                {compareTexts.compare}
              </MenuButton>
            )}
          </Menu>
        )}
        {!boot.is_kept && <ChoiceChip />}
        <span class="composer-hint">
          {hasFailed
            ? uploads.some(mayTryAgain)
              ? t.uploadFailed
              : t.uploadTooLarge
            : isUploading
              ? t.waitForUpload
              : isWanted
                ? t.sentSoon
                : isRunning && canSend && !isTouch()
                  ? t.whileRunning
                  : props.hint}
        </span>
        {canDictate() && (
          <DictateButton onHeard={(words) => setText(text ? `${text.trimEnd()} ${words}` : words)} />
        )}
        {isRunning && (
          <StopButton
            isStopping={isStopping}
            onStop={() => {
              setStopping(true);
              toComposer();
              void onStop?.().then((isAsked) => setStopping(isAsked));
            }}
          />
        )}
        {(!isRunning || canSend) && (
          <button
            type="submit"
            class="btn btn-sm btn-circle btn-primary"
            aria-label={isRunning ? t.sendAfter : t.send}
            title={isRunning ? t.sendAfter : t.send}
            disabled={!canSend}
          >
            <Icon name="arrowUp" />
          </button>
        )}
      </div>
      <ComposerDialog
        dialog={dialog}
        conversationId={props.conversationId}
        onClose={() => setDialog(null)}
        onText={(next) => {
          setText([next, draftOf(draftKey)].filter(Boolean).join("\n\n"));
          setTimeout(() => field.current?.focus());
        }}
      />
    </form>
  );
}

/** Ends the answer. It goes with it, so whoever has the focus on it goes on to the message field. */
function StopButton({ isStopping, onStop }: { isStopping: boolean; onStop: () => void }) {
  const button = useRef<HTMLButtonElement>(null);
  useRefocus(button);
  return (
    <button
      ref={button}
      type="button"
      class="btn btn-sm btn-circle btn-neutral"
      aria-label={t.stop}
      title={t.stop}
      disabled={isStopping}
      onClick={onStop}
    >
      <span class="stop-square" aria-hidden="true" />
    </button>
  );
}

function ComposerDialog(props: {
  dialog: "resources" | "servers" | Prompt | null;
  conversationId: string | undefined;
  onClose: () => void;
  onText: (text: string) => void;
}) {
  const { dialog, conversationId, onClose, onText } = props;
  if (dialog === null) return null;
  // Outside of the composer's form: a form within a form is none.
  return createPortal(
    dialog === "servers" ? (
      <ServerPicker conversationId={conversationId} onClose={onClose} />
    ) : dialog === "resources" ? (
      <ResourcePicker conversationId={conversationId} onClose={onClose} />
    ) : (
      <PromptDialog prompt={dialog} conversationId={conversationId} onClose={onClose} onText={onText} />
    ),
    document.body,
  );
}
