import { afterEach, expect, it } from "vitest";
import { CHAT_KEYS, canBeHeld, GROUPS, isPressed, keysIn, nameOf } from "../../src/shortcuts/list";
import { keysOf, pressed, setOwnKeys, takenBy, USUAL } from "../../src/shortcuts/own";

const press = (key: string, held: KeyboardEventInit = {}) => new KeyboardEvent("keydown", { key, ...held });

it("knows which keys were pressed, with nothing more and nothing less", () => {
  expect(isPressed(CHAT_KEYS.newChat, press("O", { ctrlKey: true, shiftKey: true }))).toBe(true);
  expect(isPressed(CHAT_KEYS.newChat, press("o", { metaKey: true, shiftKey: true }))).toBe(true);
  expect(isPressed(CHAT_KEYS.newChat, press("o", { ctrlKey: true }))).toBe(false);
  expect(isPressed(CHAT_KEYS.search, press("k", { ctrlKey: true }))).toBe(true);
  expect(isPressed(CHAT_KEYS.search, press("K", { ctrlKey: true, shiftKey: true }))).toBe(false);
  expect(isPressed(CHAT_KEYS.search, press("k"))).toBe(false);
  expect(isPressed(CHAT_KEYS.composer, press("Escape", { shiftKey: true }))).toBe(true);
  expect(isPressed(CHAT_KEYS.composer, press("Escape"))).toBe(false);
});

it("takes a sign with Shift too, where the keyboard has it there", () => {
  expect(isPressed(CHAT_KEYS.list, press("/", { ctrlKey: true, shiftKey: true }))).toBe(true);
  expect(isPressed(CHAT_KEYS.list, press("/", { ctrlKey: true }))).toBe(true);
  for (const key of ["'", '"']) {
    expect(isPressed(CHAT_KEYS.temporaryChat, press(key, { ctrlKey: true, shiftKey: true }))).toBe(true);
    expect(isPressed(CHAT_KEYS.temporaryChat, press(key, { ctrlKey: true }))).toBe(false);
  }
});

it("REL-588: lists every key that the chat listens to, each thing once", () => {
  const listed = GROUPS.flatMap((group) => group.shortcuts).flatMap((shortcut) => shortcut.ways);
  for (const keys of Object.values(CHAT_KEYS)) expect(listed).toContainEqual(keys);
  for (const group of GROUPS) {
    const said = group.shortcuts.map((shortcut) => shortcut.what);
    expect(new Set(said).size, group.title).toBe(said.length);
  }
});

it("names keys as they are on the person's keyboard", () => {
  expect(CHAT_KEYS.newChat.map((key) => nameOf(key, false))).toEqual(["Ctrl", "Shift", "O"]);
  expect(CHAT_KEYS.newChat.map((key) => nameOf(key, true))).toEqual(["⌘", "Shift", "O"]);
});

afterEach(() => setOwnKeys(USUAL));

it("REL-1050: does what a person's own keys say, and nothing by the usual ones that they changed", () => {
  setOwnKeys({ is_on: true, keys: { newChat: ["alt", "n"], search: [] } });
  expect(pressed(press("n", { altKey: true }))).toBe("newChat");
  expect(pressed(press("o", { ctrlKey: true, shiftKey: true }))).toBeUndefined();
  expect(pressed(press("k", { ctrlKey: true }))).toBeUndefined();
  expect(pressed(press("/", { ctrlKey: true }))).toBe("list");
  expect(keysOf("search")).toEqual([]);
  expect(takenBy(["alt", "n"], "search")).toBe("newChat");
  expect(takenBy(["alt", "n"], "newChat")).toBeUndefined();
});

it("REL-1050: does nothing where shortcuts are switched off", () => {
  setOwnKeys({ is_on: false, keys: {} });
  expect(pressed(press("k", { ctrlKey: true }))).toBeUndefined();
});

it("takes the keys that are pressed, once more than held ones are", () => {
  expect(keysIn(press("Control", { ctrlKey: true }))).toBeNull();
  expect(keysIn(press("J", { metaKey: true, shiftKey: true }))).toEqual(["mod", "shift", "j"]);
  expect(keysIn(press("F2"))).toEqual(["f2"]);
  for (const [key, held] of [
    [":", { ctrlKey: true, shiftKey: true }],
    ["?", { ctrlKey: true, shiftKey: true }],
    ["j", { altKey: true }],
  ] as const)
    expect(isPressed(keysIn(press(key, held)) ?? [], press(key, held)), key).toBe(true);
  expect(isPressed(CHAT_KEYS.copyCode, press(":", { ctrlKey: true, shiftKey: true }))).toBe(true);
});

it("knows which keys somebody would press while they write", () => {
  expect([["j"], ["shift", "j"], ["enter"], ["shift", "/"]].some(canBeHeld)).toBe(false);
  expect([["mod", "j"], ["alt", "j"], ["f2"], ["shift", "escape"]].every(canBeHeld)).toBe(true);
});
