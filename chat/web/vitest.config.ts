import { defineConfig } from "vitest/config";

export default defineConfig({
  oxc: { jsx: { runtime: "automatic", importSource: "preact" } },
  test: {
    // DOMPurify does not work on happy-dom, whose node iterators lose their place when nodes go.
    environment: "jsdom",
    include: ["tests/**/*.test.{ts,tsx}"],
    setupFiles: ["tests/after-each.ts"],
    restoreMocks: true,
    // One page for all files: what a test puts into the document it takes out again.
    isolate: false,
  },
});
