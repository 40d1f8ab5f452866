import { useEffect, useRef, useState } from "preact/hooks";
import { toast } from "../../app/toasts";
import { dictate } from "../../browser/speech";
import t from "../../texts/answers";
import { Icon } from "../../ui/icon";

/** Listens until it is pressed again; `onHeard` gets each sentence. */
export function DictateButton({ onHeard }: { onHeard: (words: string) => void }) {
  const [stop, setStop] = useState<(() => void) | null>(null);
  const hear = useRef(onHeard);
  hear.current = onHeard;
  useEffect(() => () => stop?.(), [stop]);
  const begin = () => {
    const end = dictate(
      (words) => hear.current(words),
      (problem) => {
        setStop(null);
        if (problem && problem !== "aborted" && problem !== "no-speech")
          toast(t.dictateFailed[problem] ?? t.dictateBroken, "bad");
      },
    );
    setStop(() => end);
  };
  return (
    <button
      type="button"
      class="btn btn-sm btn-circle btn-quiet"
      aria-pressed={stop !== null}
      aria-label={stop ? t.stopDictating : t.dictate}
      title={stop ? t.stopDictating : t.dictateAbout}
      onClick={() => (stop ? stop() : begin())}
    >
      <Icon name="mic" />
    </button>
  );
}
