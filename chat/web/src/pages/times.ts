/** Moments on pages that Django draws; the server writes them as far as it knows the reader. */
import { ago, isExactness, moment } from "../formats";
import common from "../texts/common";

/** Moments as the reader's browser writes them. */
export function localTimes(root: ParentNode = document): void {
  for (const time of root.querySelectorAll<HTMLTimeElement>("time[data-local]")) {
    const exactness = time.dataset.local ?? "";
    if (!isExactness(exactness) || Number.isNaN(Date.parse(time.dateTime))) continue;
    time.textContent = moment(time.dateTime, exactness);
    time.title = time.dateTime;
  }
}

/** How long ago, in words that stay right while the page is open. */
export function relativeTimes(root: ParentNode = document): void {
  for (const time of root.querySelectorAll<HTMLTimeElement>("time[data-relative]")) {
    const seconds = Math.round((Date.now() - Date.parse(time.dateTime)) / 1000);
    if (Number.isNaN(seconds)) continue;
    time.title = moment(time.dateTime, "second");
    time.textContent = seconds < 45 ? common.justNow : ago(seconds);
  }
}
