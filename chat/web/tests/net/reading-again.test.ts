import { beforeEach, expect, it, vi } from "vitest";
import { readAgain } from "../../src/net/reading-again";

const NOW = new Date("2026-01-01T00:00:00Z").getTime();
const see = (state: DocumentVisibilityState) => {
  vi.spyOn(document, "visibilityState", "get").mockReturnValue(state);
  document.dispatchEvent(new Event("visibilitychange"));
};
const touch = () => dispatchEvent(new Event("pointerdown"));

beforeEach(() => {
  vi.restoreAllMocks();
  vi.useFakeTimers({ now: NOW });
  touch();
  see("visible");
});

/** When the slowest of many pages reads, and when the quickest does. */
function window(afterTouch: number, whose = {}): [number, number] {
  return [0, 0.999].map((chance) => {
    vi.setSystemTime(NOW);
    touch();
    vi.spyOn(Math, "random").mockReturnValue(chance);
    vi.advanceTimersByTime(afterTouch);
    let at = 0;
    readAgain(`${afterTouch}-${chance}`, () => (at = Date.now()), whose);
    vi.advanceTimersByTime(20_000);
    return at - NOW - afterTouch;
  }) as [number, number];
}

it("REL-2591: pages read a change at different moments, and idle ones within a longer time", () => {
  expect(window(30_000)).toEqual([250, 1249]);
  expect(window(90_000)).toEqual([250, 10240]);
});

it("REL-2591: what the person does shows at once, and so does what another of their pages did", () => {
  expect(window(5_000)).toEqual([250, 250]);
  expect(window(90_000, { isOwn: true })).toEqual([250, 250]);
});

it("REL-2591: a page that nobody sees reads a change once it is seen, and just once", () => {
  const read = vi.fn();
  readAgain("buds", read);
  see("hidden");
  readAgain("buds", read);
  vi.advanceTimersByTime(60_000);
  readAgain("buds", read);
  vi.advanceTimersByTime(60_000);
  expect(read).not.toHaveBeenCalled();
  see("visible");
  see("visible");
  expect(read).toHaveBeenCalledOnce();
});

it("REL-2591: what the person is notified of is read although nobody sees the page", () => {
  see("hidden");
  const read = vi.fn();
  readAgain("waiting", read, { isOwn: true, isReadUnseen: true });
  vi.advanceTimersByTime(250);
  expect(read).toHaveBeenCalledOnce();
});

it("REL-2591: changes that follow each other put a reading off no further", () => {
  vi.advanceTimersByTime(90_000);
  vi.spyOn(Math, "random").mockReturnValue(0.5);
  const read = vi.fn();
  for (let second = 0; second < 6; second += 1) {
    readAgain("icons", read);
    vi.advanceTimersByTime(1000);
  }
  expect(read).toHaveBeenCalledOnce();
});

it("REL-2591: a person who acts meanwhile does not wait for what was put off", () => {
  vi.advanceTimersByTime(90_000);
  vi.spyOn(Math, "random").mockReturnValue(0.5);
  const read = vi.fn();
  readAgain("folders", read);
  touch();
  readAgain("folders", read);
  vi.advanceTimersByTime(250);
  expect(read).toHaveBeenCalledOnce();
  vi.advanceTimersByTime(20_000);
  expect(read).toHaveBeenCalledOnce();
});
