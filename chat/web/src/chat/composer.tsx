import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { Icon } from "../ui/icon";
import { useDraft } from "./draft";

interface ComposerProps {
  /** Under which name the draft is kept. */
  draftKey: string;
  placeholder: string;
  label: string;
  isRunning?: boolean;
  isDisabled?: boolean;
  onSend: (text: string) => void | Promise<unknown>;
  onStop?: () => void;
  hint?: string;
}

const isTouch = (): boolean => matchMedia("(pointer: coarse)").matches;

export function Composer(props: ComposerProps) {
  const { draftKey, isRunning = false, isDisabled = false, onSend, onStop } = props;
  const field = useRef<HTMLTextAreaElement>(null);
  const [text, setText] = useDraft(draftKey);
  const [isStopping, setStopping] = useState(false);

  useEffect(() => {
    if (!isTouch()) field.current?.focus({ preventScroll: true });
  }, [draftKey]);
  useEffect(() => {
    if (!isRunning) setStopping(false);
  }, [isRunning]);
  useLayoutEffect(() => {
    const area = field.current;
    if (!area || CSS.supports("field-sizing", "content")) return;
    area.style.height = "auto";
    area.style.height = `${Math.min(area.scrollHeight, innerHeight * 0.4)}px`;
  }, [text]);

  const canSend = !isRunning && !isDisabled && text.trim() !== "";
  const send = () => {
    if (!canSend) return;
    const words = text;
    setText("");
    void onSend(words);
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
      <textarea
        ref={field}
        id="composer-text"
        rows={1}
        value={text}
        placeholder={props.placeholder}
        disabled={isDisabled}
        enterkeyhint="send"
        onInput={(event) => setText(event.currentTarget.value)}
        onKeyDown={(event) => {
          if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
          if (isTouch()) return; // a phone's Enter makes a line; its button sends
          event.preventDefault();
          send();
        }}
      />
      <div class="composer-bar">
        <span class="text-xs text-(--quiet) truncate">{props.hint}</span>
        {isRunning ? (
          <button
            type="button"
            class="btn btn-sm btn-circle btn-neutral"
            aria-label="Stop"
            title="Stop"
            disabled={isStopping}
            onClick={() => {
              setStopping(true);
              onStop?.();
            }}
          >
            <span class="stop-square" aria-hidden="true" />
          </button>
        ) : (
          <button
            type="submit"
            class="btn btn-sm btn-circle btn-primary"
            aria-label="Send"
            title="Send"
            disabled={!canSend}
          >
            <Icon name="arrowUp" />
          </button>
        )}
      </div>
    </form>
  );
}
