import { expect, it } from "vitest";
import { CHAT_KEYS, GROUPS, isPressed, nameOf } from "../src/shortcuts/list";

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
  for (const keys of Object.values(CHAT_KEYS)) expect(listed).toContain(keys);
  for (const group of GROUPS) {
    const said = group.shortcuts.map((shortcut) => shortcut.what);
    expect(new Set(said).size, group.title).toBe(said.length);
  }
});

it("names keys as they are on the person's keyboard", () => {
  expect(CHAT_KEYS.newChat.map((key) => nameOf(key, false))).toEqual(["Ctrl", "Shift", "O"]);
  expect(CHAT_KEYS.newChat.map((key) => nameOf(key, true))).toEqual(["⌘", "Shift", "O"]);
});
