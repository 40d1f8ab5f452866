/** What the browser is asked to read aloud, and what it says when it cannot. */
import { afterAll, afterEach, beforeAll, expect, it, vi } from "vitest";
import { pieces, readAloud, readingAloud, stopReading } from "../../src/browser/speech";

interface Spoken {
  text: string;
  onend: () => void;
  onerror: (event: { error: string }) => void;
}

const spoken: Spoken[] = [];
beforeAll(() => {
  vi.stubGlobal(
    "SpeechSynthesisUtterance",
    class {
      constructor(public text: string) {}
    },
  );
  vi.stubGlobal("speechSynthesis", { speak: (one: Spoken) => spoken.push(one), cancel: () => {} });
});
afterAll(() => {
  vi.unstubAllGlobals();
});

afterEach(() => {
  spoken.length = 0;
  readingAloud.value = null;
});

it("REL-1355: reading stops with the page, and a number, an address or another script is read as it is written", () => {
  readAloud("t", "One.", () => {});
  dispatchEvent(new Event("pagehide"));
  expect(readingAloud.value).toBeNull();
  expect(pieces("It costs 3.50 at example.org. Really?! “Yes.” See v1.2…\n\nAnd so on")).toEqual([
    "It costs 3.50 at example.org.",
    "Really?!",
    "“Yes.”",
    "See v1.2…",
    "And so on",
  ]);
  expect(pieces("今日は。元気ですか？はい！")).toEqual(["今日は。", "元気ですか？", "はい！"]);
  expect(pieces("...\n\n  \n")).toEqual(["..."]);
});

it("REL-956: a browser without a voice says so once, and one that is stopped says nothing", () => {
  const fault = vi.fn();
  readAloud("t1", "First. Second.", fault);
  for (const one of spoken) one.onerror({ error: "synthesis-failed" });
  expect([fault.mock.calls.length, readingAloud.value]).toEqual([1, null]);
  readAloud("t2", "Third.", fault);
  expect(readingAloud.value).toBe("t2");
  spoken.at(-1)?.onerror({ error: "interrupted" });
  stopReading();
  expect(fault).toHaveBeenCalledOnce();
});
