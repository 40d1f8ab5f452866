/** A conversation stays at its end while it grows, unless somebody has scrolled up. */
import { render } from "preact";
import { act } from "preact/test-utils";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { useFollow } from "../../../src/chat/messages/follow";
import { at, openPage, PLACE } from "../../page";

let grown: () => void;
let list: ReturnType<typeof useFollow>;

function List() {
  list = useFollow("a", false);
  return (
    <div ref={list.scroller}>
      <div ref={list.content} />
    </div>
  );
}

/** As a browser would lay it out, and tell of it. */
function scrolled(box: HTMLElement, scrollHeight: number, scrollTop: number): void {
  Object.assign(box, { scrollTop });
  Object.defineProperty(box, "scrollHeight", { value: scrollHeight, configurable: true });
  act(() => void box.dispatchEvent(new Event("scroll")));
}

beforeEach(() => {
  openPage({ body: PLACE });
  class Observer {
    constructor(told: () => void) {
      grown = told;
    }
    observe() {}
    disconnect() {}
  }
  vi.stubGlobal("ResizeObserver", Observer);
  act(() => render(<List />, at()));
  const box = list.scroller.current as HTMLDivElement;
  Object.defineProperty(box, "clientHeight", { value: 500 });
  box.scrollTo = (() => {}) as typeof box.scrollTo;
});
afterEach(() => {
  act(() => render(null, at()));
  vi.unstubAllGlobals();
});

it("REL-1536: whoever asks for the end gets there, also where it is shorter than what was there before", () => {
  const box = list.scroller.current as HTMLDivElement;
  scrolled(box, 5_000, 4_000);
  act(() => list.jump());
  scrolled(box, 3_000, 2_000); // a part of its text is still to come
  act(() => grown());
  expect(box.scrollTop).toBe(3_000);
});

it("whoever scrolls up stays there while the list grows", () => {
  const box = list.scroller.current as HTMLDivElement;
  scrolled(box, 5_000, 4_500);
  scrolled(box, 5_000, 1_000);
  act(() => grown());
  expect(box.scrollTop).toBe(1_000);
});
