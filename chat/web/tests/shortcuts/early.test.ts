import { expect, it, vi } from "vitest";
import { keepEarly, takeEarly } from "../../src/shortcuts/early";

function press(key: string, more: KeyboardEventInit = {}): KeyboardEvent {
  const event = new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true, ...more });
  document.body.dispatchEvent(event);
  return event;
}

it("keeps what is typed until it is taken, and nothing else gets it", () => {
  const elsewhere = vi.fn();
  document.body.addEventListener("keydown", elsewhere);
  keepEarly(() => undefined);
  for (const key of ["p", "e", "x", "Backspace", "a", "Shift", "s", "Enter"]) press(key);
  expect(elsewhere).toHaveBeenCalledTimes(1); // of Shift
  expect(takeEarly()).toEqual({ text: "peas", chooses: true });
  expect(press("x").defaultPrevented).toBe(false);
  expect(takeEarly()).toEqual({ text: "", chooses: false });
});

it("leaves shortcuts and what an input method composes alone, and ends with Escape", () => {
  const leave = vi.fn(() => void takeEarly());
  keepEarly(leave);
  expect(press("k", { ctrlKey: true }).defaultPrevented).toBe(false);
  expect(press("n", { isComposing: true }).defaultPrevented).toBe(false);
  expect(press("Escape").defaultPrevented).toBe(true);
  expect(leave).toHaveBeenCalledOnce();
  expect(press("x").defaultPrevented).toBe(false);
});
