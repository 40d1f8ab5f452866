import { expect, test, vi } from "vitest";
import { startKeepingFocus } from "../../src/pages/keeping-focus";

const tell = (name: string): void => {
  document.querySelector("form")?.dispatchEvent(new CustomEvent(`htmx:${name}`, { bubbles: true }));
};
const button = (): HTMLButtonElement => document.querySelector("button") as HTMLButtonElement;

function ask(): void {
  button().focus();
  tell("config:request");
  button().disabled = true;
  button().blur();
}

test("a button that was disabled while it worked has the focus again", () => {
  vi.useFakeTimers();
  startKeepingFocus();
  document.body.innerHTML =
    '<div id="card"><form hx-post="/test/" hx-target="#card"><button>Test</button></form></div>';
  ask();
  button().disabled = false;
  tell("finally:request");
  vi.runAllTimers();
  expect(document.activeElement).toBe(button());
});

test("where it was drawn anew, the one in its place has it, and else the first thing of what was drawn", () => {
  vi.useFakeTimers();
  const form = '<form hx-post="/test/" hx-target="#card"><button>Test</button></form>';
  document.body.innerHTML = `<div id="card">${form}</div>`;
  ask();
  document.body.innerHTML = `<div id="card"><a href="#x">First</a>${form}</div>`;
  tell("after:swap");
  vi.runAllTimers();
  expect(document.activeElement).toBe(button());
  ask();
  document.body.innerHTML = '<div id="card"><a href="#x">Sign in</a><form></form></div>';
  tell("after:swap");
  vi.runAllTimers();
  expect(document.activeElement?.textContent).toBe("Sign in");
});

test("an answer to somebody else moves nothing while it works", () => {
  vi.useFakeTimers();
  const form = '<form hx-post="/test/" hx-target="#card"><button>Test</button></form>';
  document.body.innerHTML = `<span></span><div id="card"><a href="#x">First</a>${form}</div>`;
  ask();
  document.querySelector("span")?.dispatchEvent(new CustomEvent("htmx:finally:request", { bubbles: true }));
  vi.runAllTimers();
  expect(document.activeElement).toBe(document.body);
  button().disabled = false;
  tell("finally:request");
  vi.runAllTimers();
  expect(document.activeElement).toBe(button());
});

test("whoever has gone elsewhere meanwhile stays there", () => {
  vi.useFakeTimers();
  document.body.innerHTML = '<input><form hx-post="/test/"><button>Test</button></form>';
  ask();
  document.querySelector("input")?.focus();
  button().disabled = false;
  tell("finally:request");
  vi.runAllTimers();
  expect(document.activeElement?.tagName).toBe("INPUT");
  ask();
  document.dispatchEvent(new Event("pointerdown"));
  button().disabled = false;
  tell("finally:request");
  vi.runAllTimers();
  expect(document.activeElement).toBe(document.body);
});
