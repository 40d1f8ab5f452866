/** Counts in the bar that ask again as soon as what they count has changed. */
import { type Reading, readAgain } from "../net/reading-again";
import { hearOfWorkspace } from "../net/workspace";

/** Changes that only pages of one person hear of. */
const OWN = ["conversation.changed", "import.changed", "data_copy.changed"];

function refresh(count: Element, whose: Reading): void {
  readAgain(count, () => count.dispatchEvent(new Event("refresh")), whose);
}

/** Follow what each `data-refresh-on` names, by kinds of changes; htmx asks again on `refresh`. */
export function startLiveCounts(): void {
  const counts = (): NodeListOf<HTMLElement> => document.querySelectorAll<HTMLElement>("[data-refresh-on]");
  if (!counts().length) return;
  hearOfWorkspace({
    onChange: (kind) => {
      const isOwn = OWN.includes(kind);
      for (const count of counts())
        if (count.dataset.refreshOn?.split(" ").includes(kind)) refresh(count, { isOwn });
    },
    onReturn: () => {
      for (const count of counts()) refresh(count, { isOwn: true });
    },
  });
}
