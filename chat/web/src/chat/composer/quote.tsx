/** Quoting: what is selected in a message goes into the next one, and is shown as a quote there. */
import { useEffect, useState } from "preact/hooks";
import { draftOf, keepDraft } from "../../store/draft";
import t from "../../texts/chat";
import { Icon } from "../../ui/icon";
import { passagesOf, withQuote } from "./quoting";

/** Until a selection stands still. */
const PAUSE_MS = 200;
const GAP = 8;
const HEIGHT = 34;

interface Selected {
  text: string;
  top: number;
  left: number;
}

const messageAt = (node: Node | null): Element | null =>
  (node instanceof Element ? node : (node?.parentElement ?? null))?.closest(".chat-column [data-messages]") ??
  null;

/** What is selected within one message. */
function selected(): Selected | null {
  const selection = getSelection();
  if (!selection || selection.isCollapsed || selection.rangeCount === 0) return null;
  const message = messageAt(selection.anchorNode);
  const text = selection.toString().trim();
  if (!message || message !== messageAt(selection.focusNode) || text === "") return null;
  const box = selection.getRangeAt(0).getBoundingClientRect();
  const top = box.top - GAP - HEIGHT < 60 ? box.bottom + GAP : box.top - GAP - HEIGHT;
  return { text, top: Math.min(top, innerHeight - 3 * HEIGHT), left: Math.max(8, box.left) };
}

/** A button beside what is selected. */
export function QuoteButton({ draftKey }: { draftKey: string }) {
  const [shown, setShown] = useState<Selected | null>(null);
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout>;
    const look = () => {
      clearTimeout(timer);
      timer = setTimeout(() => setShown(selected()), PAUSE_MS);
    };
    document.addEventListener("selectionchange", look);
    document.addEventListener("scroll", look, { capture: true, passive: true });
    return () => {
      clearTimeout(timer);
      document.removeEventListener("selectionchange", look);
      document.removeEventListener("scroll", look, { capture: true });
    };
  }, [draftKey]);
  if (!shown) return null;
  const quote = () => {
    keepDraft(draftKey, withQuote(draftOf(draftKey), shown.text));
    getSelection()?.removeAllRanges();
    setShown(null);
    const field = document.querySelector<HTMLTextAreaElement>("#composer-text");
    // After the field has its new words.
    setTimeout(() => {
      field?.focus();
      field?.setSelectionRange(field.value.length, field.value.length);
    });
  };
  return (
    <button
      type="button"
      class="btn btn-xs btn-outline-quiet quote-button"
      style={{ top: `${shown.top}px`, left: `${shown.left}px` }}
      onPointerDown={(event) => event.preventDefault()}
      onClick={quote}
    >
      <Icon name="quote" />
      {t.quote}
    </button>
  );
}

/** What a person wrote. */
export function Written({ text }: { text: string }) {
  const passages = passagesOf(text);
  if (passages.every((one) => !one.isQuote)) return <>{text}</>;
  return (
    <>
      {passages.map((one, at) =>
        one.isQuote ? <blockquote key={at}>{one.text}</blockquote> : <p key={at}>{one.text}</p>,
      )}
    </>
  );
}
