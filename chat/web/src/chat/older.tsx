/** The beginning of what is here of a long conversation: more of it comes as somebody scrolls up to it. */
import type { RefObject } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { loadOlderGently } from "../app";
import t from "../texts/chat";
import common from "../texts/common";
import type { Message } from "../wire";

/** How far above the visible part the next one is loaded. */
const AHEAD = "800px";

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
    box.scrollTop += moved() + lost.current;
    // Boxes scroll by whole pixels: what is left over is made good with the next piece.
    lost.current += moved();
    place.current = null;
  }, [first.id]);
  useEffect(() => {
    if (!mark.current || problem) return;
    const near = new IntersectionObserver(
      (entries) => entries.some((entry) => entry.isIntersecting) && void load(),
      { root: scroller.current, rootMargin: `${AHEAD} 0px 0px 0px` },
    );
    near.observe(mark.current);
    return () => near.disconnect();
  }, [first.id, problem]);
  return (
    <div ref={mark} class="older" aria-busy={problem === ""}>
      {problem ? (
        <>
          <span class="field-error" role="alert">
            {problem}
          </span>
          <button type="button" class="btn btn-xs btn-outline-quiet" onClick={() => void load()}>
            {common.tryAgain}
          </button>
        </>
      ) : (
        t.loadingOlder
      )}
    </div>
  );
}
