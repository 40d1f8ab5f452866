/** Counts in the bar that ask again as soon as what they count has changed. */
import { hearOfWorkspace } from "../net/workspace";

const SETTLE_MS = 300;
const timers = new Map<Element, ReturnType<typeof setTimeout>>();
/** Those that changed while nobody looked. */
const stale = new Set<Element>();

/** Several changes within a moment cost one request, and a page that nobody sees costs none. */
function refresh(count: Element): void {
  if (document.visibilityState === "hidden") {
    stale.add(count);
    return;
  }
  clearTimeout(timers.get(count));
  timers.set(
    count,
    setTimeout(() => count.dispatchEvent(new Event("refresh")), SETTLE_MS),
  );
}

/** Follow what each `data-refresh-on` names, by kinds of changes; htmx asks again on `refresh`. */
export function startLiveCounts(): void {
  const counts = (): NodeListOf<HTMLElement> => document.querySelectorAll<HTMLElement>("[data-refresh-on]");
  if (!counts().length) return;
  hearOfWorkspace({
    onChange: (kind) => {
      for (const count of counts()) if (count.dataset.refreshOn?.split(" ").includes(kind)) refresh(count);
    },
    onReturn: () => counts().forEach(refresh),
  });
  document.addEventListener("visibilitychange", () => {
    if (document.visibilityState === "hidden") return;
    for (const count of stale) refresh(count);
    stale.clear();
  });
}
