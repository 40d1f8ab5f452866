/** The edges of what is here of a long conversation: more of it comes as somebody scrolls to them. */
import type { RefObject } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { loadNewerGently, loadOlderGently } from "../../store/open-conversation";
import t from "../../texts/chat";
import common from "../../texts/common";
import type { Message } from "../../wire";

/** How far from the visible part the next one is loaded. */
const AHEAD = "800px";

/** Its beginning. */
export function OlderMessages({
  first,
  scroller,
}: {
  first: Message;
  scroller: RefObject<HTMLElement | null>;
}) {
  const mark = useRef<HTMLDivElement>(null);
  const isLoading = useRef(false);
  const place = useRef<{ element: Element; top: number } | null>(null);
  const lost = useRef(0);
  const [problem, setProblem] = useState("");
  const load = async () => {
    if (isLoading.current) return;
    isLoading.current = true;
    const failed = await loadOlderGently(first, () => {
      const element = mark.current?.nextElementSibling?.firstElementChild;
      if (element) place.current = { element, top: element.getBoundingClientRect().top };
    });
    isLoading.current = false;
    setProblem(failed);
  };
  useLayoutEffect(() => {
    // The reader stays at what they were reading; it has moved down by what came above it.
    const box = scroller.current;
    if (!box || !place.current) return;
    const { element, top } = place.current;
    const moved = () => element.getBoundingClientRect().top - top;
    place.current = null;
    // Texts are drawn by effects of their own, which come after this one.
    queueMicrotask(() => {
      box.scrollTop += moved() + lost.current;
      // Boxes scroll by whole pixels: what is left over is made good with the next piece.
      lost.current += moved();
    });
  }, [first.id]);
  useNear(mark, scroller, first.id, problem === "", load);
  return <Loader mark={mark} text={t.loadingOlder} problem={problem} onRetry={load} />;
}

/** The end of an excerpt: more follows as somebody scrolls down to it. */
export function NewerMessages({
  conversationId,
  last,
  scroller,
}: {
  conversationId: string;
  last: string;
  scroller: RefObject<HTMLElement | null>;
}) {
  const mark = useRef<HTMLDivElement>(null);
  const isLoading = useRef(false);
  const [problem, setProblem] = useState("");
  const load = async () => {
    if (isLoading.current) return;
    isLoading.current = true;
    setProblem(await loadNewerGently(conversationId, last));
    isLoading.current = false;
  };
  useNear(mark, scroller, last, problem === "", load);
  return <Loader mark={mark} text={t.loadingNewer} problem={problem} onRetry={load} />;
}

/** Load as soon as the mark comes near the visible part; anew for each `key`. */
function useNear(
  mark: RefObject<HTMLElement | null>,
  scroller: RefObject<HTMLElement | null>,
  key: string,
  isOn: boolean,
  load: () => Promise<void>,
): void {
  useEffect(() => {
    if (!mark.current || !isOn) return;
    const near = new IntersectionObserver(
      (entries) => entries.some((entry) => entry.isIntersecting) && void load(),
      { root: scroller.current, rootMargin: `${AHEAD} 0px` },
    );
    near.observe(mark.current);
    return () => near.disconnect();
  }, [key, isOn]);
}

function Loader({
  mark,
  text,
  problem,
  onRetry,
}: {
  mark: RefObject<HTMLDivElement | null>;
  text: string;
  problem: string;
  onRetry: () => Promise<void>;
}) {
  return (
    <div ref={mark} class="older" aria-busy={problem === ""}>
      {problem ? (
        <>
          <span class="field-error" role="alert">
            {problem}
          </span>
          <button type="button" class="btn btn-xs btn-outline-quiet" onClick={() => void onRetry()}>
            {common.tryAgain}
          </button>
        </>
      ) : (
        <span class="no-print">{text}</span>
      )}
      <span class="only-printed">{t.notAllPrinted}</span>
    </div>
  );
}
