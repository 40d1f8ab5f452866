import { defineConfig } from "vitest/config";

export default defineConfig({
  oxc: { jsx: { runtime: "automatic", importSource: "preact" } },
  test: {
    // DOMPurify does not work on happy-dom, whose node iterators lose their place when nodes go.
    environment: "jsdom",
    include: ["tests/**/*.test.{ts,tsx}"],
    setupFiles: ["tests/after-each.ts"],
    restoreMocks: true,
    // A page for each file, without a process for each. On one page, listeners and modules of earlier files stay.
    pool: "vmThreads",
  },
});
