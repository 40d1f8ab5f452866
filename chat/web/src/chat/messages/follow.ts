import { useEffect, useRef, useState } from "preact/hooks";

const NEAR = 80;

/**
 * Keep a scrolling list at its end while it grows, unless the reader has scrolled up.
 *
 * @param isExcerpt the list ends before its true end, so there is nothing to follow.
 */
export function useFollow(key: string, isExcerpt: boolean) {
  const scroller = useRef<HTMLDivElement>(null);
  const content = useRef<HTMLDivElement>(null);
  const isFollowing = useRef(true);
  const last = useRef(0);
  const [isAway, setAway] = useState(false);
  const endsEarly = useRef(isExcerpt);
  endsEarly.current = isExcerpt;

  const jump = (behavior: ScrollBehavior = "instant") => {
    const box = scroller.current;
    if (!box) return;
    isFollowing.current = true;
    // What is drawn next may be shorter, and then the list moves up by itself: nobody has scrolled.
    last.current = 0;
    box.removeAttribute("data-reading");
    setAway(false);
    box.scrollTo({ top: box.scrollHeight, behavior });
  };

  useEffect(() => {
    const box = scroller.current;
    const inner = content.current;
    if (!box || !inner) return;
    isFollowing.current = true;
    setAway(false);
    last.current = box.scrollTop;
    const scrolled = () => {
      const distance = box.scrollHeight - box.scrollTop - box.clientHeight;
      if (box.scrollTop < last.current - 2 && distance > 4) isFollowing.current = false;
      if (distance < 4) isFollowing.current = true;
      if (endsEarly.current) isFollowing.current = false;
      last.current = box.scrollTop;
      box.toggleAttribute("data-reading", !isFollowing.current);
      setAway(!isFollowing.current && distance > NEAR);
    };
    const grown = new ResizeObserver(() => {
      if (isFollowing.current && !endsEarly.current) box.scrollTop = box.scrollHeight;
      else scrolled();
    });
    box.addEventListener("scroll", scrolled, { passive: true });
    grown.observe(inner);
    grown.observe(box);
    return () => {
      box.removeEventListener("scroll", scrolled);
      grown.disconnect();
    };
  }, [key]);

  return { scroller, content, isAway: isAway || isExcerpt, jump };
}
