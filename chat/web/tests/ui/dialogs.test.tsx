import { render } from "preact";
import { act } from "preact/test-utils";
import { beforeEach, expect, it, vi } from "vitest";
import { at, openPage, PLACE } from "../page";

openPage({ body: PLACE });
const { Dialog } = await import("../../src/ui/dialog");
const { hearOfArriving, moveTo, openLayer } = await import("../../src/browser/layers");

const arrived = vi.fn();
hearOfArriving(arrived);

/** Press a button of the browser, or wait where the page presses one; until the history is there. */
function moved(press: () => void): Promise<void> {
  return new Promise((resolve) => {
    addEventListener("popstate", () => resolve(), { once: true });
    press();
  });
}

const draw = (leave: () => void = () => act(() => render(null, at()))) =>
  act(() =>
    render(
      <Dialog title="Rename chat" onClose={leave}>
        <input />
      </Dialog>,
      at(),
    ),
  );

const close = () => act(() => render(null, at()));

beforeEach(async () => {
  if (history.state) await moved(close);
  history.pushState(null, "", "/w/w/");
  history.pushState(null, "", "/w/w/c/one/");
  arrived.mockClear();
});

it("REL-2214: Back closes a dialog and stays in the chat; the next one leads on", async () => {
  const leave = vi.fn(close);
  draw(leave);
  await moved(() => history.back());
  expect(leave).toHaveBeenCalledOnce();
  expect([location.pathname, history.state]).toEqual(["/w/w/c/one/", null]);
  await moved(() => history.back());
  expect(location.pathname).toBe("/w/w/");
  expect(leave).toHaveBeenCalledOnce();
});

it("REL-2214: of several, Back closes the topmost alone", async () => {
  const below = openLayer(vi.fn());
  const leave = vi.fn(close);
  draw(leave);
  await moved(() => history.back());
  expect(leave).toHaveBeenCalledOnce();
  expect(arrived).not.toHaveBeenCalled();
  expect(history.state).toEqual({ layer: 1 });
  await moved(below);
  expect(history.state).toBeNull();
});

it("REL-2214: a dialog that closes by itself leaves nothing that Back has to go past", async () => {
  draw();
  await moved(close);
  expect(history.state).toBeNull();
  await moved(() => history.back());
  expect(location.pathname).toBe("/w/w/");
});

it("REL-2214: what a dialog leads to lies right behind the page that it was opened on", async () => {
  draw();
  const there = new Promise<void>((resolve) => {
    addEventListener("popstate", () => resolve(), { once: true });
  });
  moveTo("/w/w/c/two/");
  close();
  await there;
  expect([location.pathname, history.state]).toEqual(["/w/w/c/two/", null]);
  await moved(() => history.back());
  expect(location.pathname).toBe("/w/w/c/one/");
  await moved(() => history.forward());
  expect(location.pathname).toBe("/w/w/c/two/");
});

it("REL-2214: a chat that a dialog deletes is no place to come back to", async () => {
  draw();
  moveTo("/w/w/other/", { replaces: true });
  await moved(close);
  expect(location.pathname).toBe("/w/w/other/");
  await moved(() => history.back());
  expect(location.pathname).toBe("/w/w/");
});

it("REL-2214: Forward opens no closed dialog again, and leaves no entry to press Back on", async () => {
  draw();
  await moved(() => history.back());
  await moved(() => history.forward());
  await moved(() => {});
  expect(history.state).toBeNull();
  await moved(() => history.back());
  expect(location.pathname).toBe("/w/w/");
});

it("REL-2214: a reload with a dialog open leaves its entry", async () => {
  history.pushState({ layer: 1 }, "");
  vi.resetModules();
  await moved(() => void import("../../src/browser/layers"));
  expect([location.pathname, history.state]).toEqual(["/w/w/c/one/", null]);
});

it("REL-1907: closes where the browser's button leads past it to another page, and hears of it no more then", async () => {
  const leave = vi.fn(close);
  draw(leave);
  await moved(() => history.go(-2));
  expect(leave).toHaveBeenCalledOnce();
  expect(arrived).toHaveBeenCalledOnce();
  expect(location.pathname).toBe("/w/w/");
});
