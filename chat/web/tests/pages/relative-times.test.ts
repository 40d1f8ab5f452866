import { afterEach, expect, it, vi } from "vitest";
import { relativeTimes } from "../../src/pages/times";

afterEach(() => {
  vi.useRealTimers();
  document.body.replaceChildren();
});

const ATTEMPTS = [
  ["2026-12-02T12:02:00Z", "in 2 minutes"],
  ["2026-12-02T15:00:00Z", "in 3 hours"],
  ["2026-12-02T12:00:20Z", "any moment now"],
  ["2026-12-02T11:55:00Z", "any moment now"],
];

it.each(ATTEMPTS)("REL-3192: the next attempt is as far away as the reader's clock says: %s", (at, words) => {
  vi.useFakeTimers({ now: Date.parse("2026-12-02T12:00:00Z") });
  document.body.innerHTML = `<time datetime="${at}" data-relative="ahead"></time><time datetime="2026-12-02T11:58:00Z"
    data-relative></time>`;
  relativeTimes();
  expect([...document.querySelectorAll("time")].map((time) => time.textContent)).toEqual([
    words,
    "2 minutes ago",
  ]);
});
