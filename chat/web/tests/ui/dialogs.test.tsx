import { render } from "preact";
import { act } from "preact/test-utils";
import { beforeEach, expect, it, vi } from "vitest";
import "../../src/browser/input-method";
import { at, openPage, PLACE } from "../page";

openPage({ body: PLACE });
const { Dialog } = await import("../../src/ui/dialog");
const { SearchField } = await import("../../src/ui/search-field");
const { Menu } = await import("../../src/ui/menu");
const { askFirst } = await import("../../src/pages/asking");
const { moveTo, openLayer, pathOfPage, startLayers } = await import("../../src/browser/layers");

const arrived = vi.fn();
startLayers(arrived);

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

it("REL-3091: what is typed as a dialog opens takes the place of the name that is there", () => {
  act(() =>
    render(
      <Dialog title="Rename chat" onClose={close}>
        <input defaultValue="Old name" />
      </Dialog>,
      at(),
    ),
  );
  const field = at().querySelector("input");
  expect([field?.selectionStart, field?.selectionEnd]).toEqual([0, "Old name".length]);
});

it("REL-2525: on a touch screen a menu has its entry as soon as it opens, before anything is drawn", async () => {
  vi.stubGlobal("matchMedia", () => ({ matches: true }));
  act(() =>
    render(
      <Menu label="More" buttonClass="" button="…">
        <button type="button">Rename</button>
      </Menu>,
      at(),
    ),
  );
  const menu = at().querySelector("[popover]") as HTMLElement;
  const toggles = (newState: string) =>
    menu.dispatchEvent(Object.assign(new Event("beforetoggle"), { newState }));
  menu.hidePopover = () => void toggles("closed");
  toggles("open");
  expect(history.state).toMatchObject({ layer: 1 });
  await moved(() => history.back());
  expect([location.pathname, history.state]).toEqual(["/w/w/c/one/", null]);
  vi.unstubAllGlobals();
});

it("REL-2214: of several, Back closes the topmost alone", async () => {
  const below = openLayer(vi.fn());
  const leave = vi.fn(close);
  draw(leave);
  await moved(() => history.back());
  expect(leave).toHaveBeenCalledOnce();
  expect(arrived).not.toHaveBeenCalled();
  expect(history.state).toMatchObject({ layer: 1 });
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

it("REL-2214: Forward past a closed dialog leads to the page behind it", async () => {
  draw();
  history.pushState(null, "", "/w/w/servers/"); // as a link in it does
  await moved(() => history.go(-2));
  arrived.mockClear();
  await moved(() => history.forward());
  await moved(() => {});
  expect([location.pathname, history.state]).toEqual(["/w/w/servers/", null]);
});

it("REL-2214: a jump to the entry of a closed dialog shows the page that it was opened on", async () => {
  moveTo("/w/w/c/two/");
  draw();
  await moved(() => history.go(-2));
  expect(location.pathname).toBe("/w/w/c/one/");
  arrived.mockClear();
  await moved(() => history.go(2));
  await moved(() => {});
  expect([location.pathname, history.state]).toEqual(["/w/w/c/two/", null]);
  expect(arrived).toHaveBeenCalledOnce();
});

it("REL-2214: two addresses that follow a dialog are both places to come back to", async () => {
  draw();
  moveTo("/w/w/c/two/");
  moveTo("/w/w/c/three/");
  expect(pathOfPage()).toBe("/w/w/c/three/");
  await moved(close);
  expect([location.pathname, pathOfPage()]).toEqual(["/w/w/c/three/", "/w/w/c/three/"]);
  await moved(() => history.back());
  expect(location.pathname).toBe("/w/w/c/two/");
  await moved(() => history.back());
  expect(location.pathname).toBe("/w/w/c/one/");
});

it("REL-2214: an entry that the browser does not find keeps no address from changing", () => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  history.replaceState({ layer: 99 }, "");
  moveTo("/w/w/c/two/");
  vi.advanceTimersByTime(2000);
  expect([location.pathname, history.state]).toEqual(["/w/w/c/two/", null]);
});

/** Ask, and press what the question offers: the page of these tests knows neither forms nor ends of dialogs. */
function ask(run: () => void, otherwise: () => void): { press: (value: string) => void } {
  vi.spyOn(HTMLDialogElement.prototype, "close").mockImplementation(function (this: HTMLDialogElement) {
    this.dispatchEvent(new Event("close"));
  });
  askFirst("Sign out?", "Sign out anyway", run, otherwise);
  const dialog = document.querySelector<HTMLDialogElement>("dialog.sheet");
  return {
    press: (value) => {
      if (!dialog) return;
      dialog.returnValue = value;
      dialog.close();
    },
  };
}

it("REL-2214: Back closes a question, which is a no", async () => {
  const run = vi.fn();
  const otherwise = vi.fn();
  ask(run, otherwise);
  await moved(() => history.back());
  expect(document.querySelector("dialog")).toBeNull();
  expect(location.pathname).toBe("/w/w/c/one/");
  expect([run, otherwise].map((one) => one.mock.calls.length)).toEqual([0, 1]);
});

it("REL-2214: what a question leads to waits until the history stands still", async () => {
  const states: unknown[] = [];
  const { press } = ask(() => states.push(history.state), vi.fn());
  await moved(() => press("yes"));
  expect(states).toEqual([null]);
});

it("REL-2214: a page outside the chat asks without an entry of the history, and leaves at once", async () => {
  vi.resetModules();
  const { askFirst } = await import("../../src/pages/asking");
  const run = vi.fn();
  const before = history.length;
  vi.spyOn(HTMLDialogElement.prototype, "close").mockImplementation(() => {});
  askFirst("Remove it?", "Remove", run);
  const dialog = document.querySelector<HTMLDialogElement>("dialog.sheet");
  if (dialog) dialog.returnValue = "yes";
  dialog?.dispatchEvent(new Event("close"));
  expect(run).toHaveBeenCalledOnce();
  expect([history.length, history.state]).toEqual([before, null]);
});

it("REL-1907: closes where the browser's button leads past it to another page, and hears of it no more then", async () => {
  const leave = vi.fn(close);
  draw(leave);
  await moved(() => history.go(-2));
  expect(leave).toHaveBeenCalledOnce();
  expect(arrived).toHaveBeenCalledOnce();
  expect(location.pathname).toBe("/w/w/");
});

// The last one: what it starts goes on hearing of the history.
it("REL-2214: a reload with a dialog open leaves its entry", async () => {
  history.pushState({ layer: 1 }, "");
  vi.resetModules();
  const { startLayers } = await import("../../src/browser/layers");
  await moved(() => startLayers(vi.fn()));
  expect([location.pathname, history.state]).toEqual(["/w/w/c/one/", null]);
});

it("REL-2601: a search has one cross, which closes it", () => {
  const heard = { onInput: vi.fn(), onMark: vi.fn(), onChoose: vi.fn(), onClose: vi.fn() };
  const shown = { label: "Search", placeholder: "", value: "a", list: "list", rows: [], at: 0 };
  act(() => render(<SearchField {...shown} {...heard} />, at()));
  expect(at().querySelectorAll("button")).toHaveLength(1);
  expect(at().querySelector("input")?.type).toBe("text"); // browsers draw their own in one for searches
});

it("REL-2281: a key that chooses what an input method offers does nothing else, in Safari neither", () => {
  const heard = { onInput: vi.fn(), onMark: vi.fn(), onChoose: vi.fn(), onClose: vi.fn() };
  const shown = { label: "Search", placeholder: "", value: "東", list: "list", rows: ["one", "two"], at: 0 };
  act(() => render(<SearchField {...shown} {...heard} />, at()));
  const press = (key: string, more: KeyboardEventInit = {}) => {
    const event = new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true, ...more });
    at().querySelector("input")?.dispatchEvent(event);
    return event.defaultPrevented;
  };
  const keys = ["ArrowDown", "Enter", "Escape"];
  // Safari's key comes after the end of what is composed.
  for (const taken of [{ isComposing: true }, { keyCode: 229 }])
    for (const key of keys) expect(press(key, taken)).toBe(false);
  for (const on of Object.values(heard)) expect(on).not.toHaveBeenCalled();
  const writing = vi.fn();
  at().addEventListener("keydown", writing);
  for (const key of ["a", "Process", "Unidentified", "Dead"]) press(key, { keyCode: 229 });
  expect(writing).toHaveBeenCalledTimes(4);
  for (const key of keys) expect(press(key)).toBe(true);
  for (const on of [heard.onMark, heard.onChoose, heard.onClose]) expect(on).toHaveBeenCalledOnce();
});
