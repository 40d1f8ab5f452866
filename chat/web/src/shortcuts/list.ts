/** All keyboard shortcuts, once: the chat listens by this list, and its help and the page of shortcuts show it. Pure. */
import t from "../texts/shortcuts";

/** "mod" is ⌘ on a Mac and Ctrl elsewhere; others are named as the browser names them, in small letters. */
export type Keys = readonly string[];

/** What the chat listens to wherever the focus is. */
export const CHAT_KEYS = {
  newChat: ["mod", "shift", "o"],
  temporaryChat: ["mod", "shift", "'"],
  search: ["mod", "k"],
  choose: ["mod", "shift", "m"],
  composer: ["shift", "escape"],
  list: ["mod", "/"],
} satisfies Record<string, Keys>;

/** Where a group of shortcuts works. */
export type Place = "chat" | "pages" | "audit" | "admin";

export interface Shortcut {
  what: string;
  /** One of these does it. */
  ways: readonly Keys[];
}

export interface Group {
  title: string;
  place: Place;
  shortcuts: readonly Shortcut[];
}

const one = (what: string, ...ways: Keys[]): Shortcut => ({ what, ways });
const UP_DOWN: readonly [Keys, Keys] = [["arrowup"], ["arrowdown"]];

export const GROUPS: readonly Group[] = [
  {
    title: t.chat,
    place: "chat",
    shortcuts: [
      one(t.newChat, CHAT_KEYS.newChat),
      one(t.temporaryChat, CHAT_KEYS.temporaryChat),
      one(t.search, CHAT_KEYS.search),
      one(t.choose, CHAT_KEYS.choose),
      one(t.composer, CHAT_KEYS.composer),
      one(t.help, CHAT_KEYS.list),
    ],
  },
  {
    title: t.message,
    place: "chat",
    shortcuts: [
      one(t.send, ["enter"]),
      one(t.newLine, ["shift", "enter"]),
      one(t.interrupt, ["mod", "enter"]),
      one(t.commands, ["/"]),
      one(t.mention, ["@"]),
      one(t.takeAlong, ["#"]),
      one(t.walkCommands, ...UP_DOWN),
      one(t.takeCommand, ["enter"], ["tab"]),
      one(t.closeCommands, ["escape"]),
    ],
  },
  {
    title: t.changing,
    place: "chat",
    shortcuts: [one(t.keep, ["mod", "enter"]), one(t.dismiss, ["escape"])],
  },
  { title: t.deciding, place: "chat", shortcuts: [one(t.allow, ["enter"])] },
  {
    title: t.found,
    place: "chat",
    shortcuts: [one(t.walkFound, ...UP_DOWN), one(t.openFound, ["enter"]), one(t.close, ["escape"])],
  },
  {
    title: t.files,
    place: "chat",
    shortcuts: [one(t.saveFile, ["mod", "s"]), one(t.closeFile, ["escape"])],
  },
  { title: t.selecting, place: "chat", shortcuts: [one(t.stopSelecting, ["escape"])] },
  {
    title: t.pages,
    place: "pages",
    shortcuts: [
      one(t.search, CHAT_KEYS.search),
      one(t.walkMenu, ...UP_DOWN),
      one(t.edgesOfMenu, ["home"], ["end"]),
      one(t.close, ["escape"]),
    ],
  },
  {
    title: t.audit,
    place: "audit",
    shortcuts: [
      one(t.walkOffers, ...UP_DOWN),
      one(t.takeOffer, ["enter"], ["tab"]),
      one(t.closeOffers, ["escape"]),
    ],
  },
  {
    title: t.admin,
    place: "admin",
    shortcuts: [one(t.searchAdmin, ["mod", "k"]), one(t.searchList, ["/"])],
  },
];

/** Signs that Shift makes of another one, by the keyboards that have both on one key. */
const SHIFTED: Readonly<Record<string, string>> = { '"': "'" };

/** Whether these are the keys that were pressed. */
export function isPressed(keys: Keys, event: KeyboardEvent): boolean {
  const key = SHIFTED[event.key] ?? event.key.toLowerCase();
  if (key !== keys.at(-1)) return false;
  if (keys.includes("mod") !== (event.metaKey || event.ctrlKey)) return false;
  // Some keyboards need Shift for a sign.
  const isSign = key.length === 1 && key === key.toUpperCase();
  return keys.includes("shift") === event.shiftKey || (isSign && event.shiftKey);
}

/** What stands on the key. */
export function nameOf(key: string, isMac: boolean): string {
  if (key === "mod" && isMac) return "⌘";
  return t.keys[key] ?? key.toUpperCase();
}
