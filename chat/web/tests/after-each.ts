/** Files share one page and one clock, so no test leaves its own behind. */
import { afterEach, vi } from "vitest";

afterEach(() => {
  vi.useRealTimers();
});
