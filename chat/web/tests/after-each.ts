/** Tests of a file share one clock, so none leaves its own behind. */
import { afterEach, vi } from "vitest";

afterEach(() => {
  vi.useRealTimers();
});
