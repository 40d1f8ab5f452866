import { signal } from "@preact/signals";
import { useRef } from "preact/hooks";
import t from "../../texts/chat";
import { Icon } from "../../ui/icon";
import { Written } from "../composer/quote";

/** What a pasted log or document passes, and what somebody types does not. */
const LONG_CHARACTERS = 3_000;
const LONG_LINES = 40;

/** Which long messages are shown whole. */
const unfolded = signal<ReadonlySet<string>>(new Set());

export const isLong = (text: string): boolean =>
  text.length > LONG_CHARACTERS || (text.match(/\n/g)?.length ?? 0) >= LONG_LINES;

/** Show a message whole: somebody looks for something in it. */
export function unfold(id: string): void {
  unfolded.value = new Set(unfolded.value).add(id);
}

function fold(id: string): void {
  unfolded.value = new Set([...unfolded.value].filter((one) => one !== id));
}

interface BubbleProps {
  id: string;
  text: string;
  title?: string;
  isPending?: boolean;
}

/** What a person wrote. Of a long one the beginning is shown, so that the answer stays within reach. */
export function Bubble({ id, text, title, isPending }: BubbleProps) {
  const button = useRef<HTMLButtonElement>(null);
  const long = isLong(text);
  const isFolded = long && !unfolded.value.has(id);
  const words = `words-${id}`;
  return (
    <>
      <div
        id={words}
        class="bubble"
        title={title}
        data-pending={isPending}
        data-folded={isFolded || undefined}
      >
        <Written text={text} />
      </div>
      {long && (
        <button
          ref={button}
          type="button"
          class="btn btn-sm btn-quiet"
          aria-expanded={!isFolded}
          aria-controls={words}
          onClick={() => {
            if (isFolded) return unfold(id);
            fold(id);
            // Its place is far above now.
            requestAnimationFrame(() => button.current?.scrollIntoView({ block: "nearest" }));
          }}
        >
          <Icon name="chevronDown" class={isFolded ? "" : "rotate-180"} />
          {isFolded ? t.showWhole : t.showLess}
        </button>
      )}
    </>
  );
}
