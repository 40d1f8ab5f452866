/** Moments on pages that Django draws; the server writes them as far as it knows the reader. */
import { ago, isExactness, moment, momentIn } from "../formats";
import common from "../texts/common";

/** Moments as the reader's browser writes them. */
export function localTimes(root: ParentNode = document): void {
  for (const time of root.querySelectorAll<HTMLTimeElement>("time[data-local]")) {
    const { local: exactness = "", zone } = time.dataset;
    if (!isExactness(exactness) || Number.isNaN(Date.parse(time.dateTime))) continue;
    const written = zone ? momentIn(zone, time.dateTime, exactness) : moment(time.dateTime, exactness);
    if (written === null) continue;
    time.textContent = written;
    time.title = time.dateTime;
  }
}

/** How long ago, or how soon, in words that stay right while the page is open. */
export function relativeTimes(root: ParentNode = document): void {
  for (const time of root.querySelectorAll<HTMLTimeElement>("time[data-relative]")) {
    const seconds = Math.round((Date.now() - Date.parse(time.dateTime)) / 1000);
    if (Number.isNaN(seconds)) continue;
    time.title = moment(time.dateTime, "second");
    if (time.dataset.relative === "ahead") time.textContent = seconds > -45 ? common.anyMoment : ago(seconds);
    else time.textContent = seconds < 45 ? common.justNow : ago(seconds);
  }
}
