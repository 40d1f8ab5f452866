/** All keyboard shortcuts, once: the chat listens by this list, and its help and the page of shortcuts show it. Pure. */
import t from "../texts/shortcuts";

/** "mod" is ⌘ on a Mac and Ctrl elsewhere; others are named as the browser names them, in small letters. */
export type Keys = readonly string[];

/** What the chat listens to wherever the focus is, with the usual keys; people may choose others (`own.ts`). */
export const CHAT_KEYS = {
  newChat: ["mod", "shift", "o"],
  temporaryChat: ["mod", "shift", "'"],
  search: ["mod", "k"],
  choose: ["mod", "shift", "m"],
  composer: ["shift", "escape"],
  copyAnswer: ["mod", "shift", "c"],
  copyCode: ["mod", "shift", ";"],
  print: ["mod", "p"],
  sidebar: ["mod", "shift", "s"],
  settings: ["mod", "."],
  list: ["mod", "/"],
} satisfies Record<string, Keys>;

export type ShortcutName = keyof typeof CHAT_KEYS;
export const NAMES = Object.keys(CHAT_KEYS) as ShortcutName[];

/** Where a group of shortcuts works. */
export type Place = "chat" | "pages" | "audit" | "admin";

export interface Shortcut {
  what: string;
  /** One of these does it. */
  ways: readonly Keys[];
  /** Where people may choose other keys. */
  name?: ShortcutName;
}

export interface Group {
  title: string;
  place: Place;
  shortcuts: readonly Shortcut[];
}

const one = (what: string, ...ways: Keys[]): Shortcut => ({ what, ways });
const own = (name: ShortcutName): Shortcut => ({ what: t.chatKeys[name], ways: [CHAT_KEYS[name]], name });
const UP_DOWN: readonly [Keys, Keys] = [["arrowup"], ["arrowdown"]];

export const GROUPS: readonly Group[] = [
  {
    title: t.chat,
    place: "chat",
    shortcuts: NAMES.map(own),
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
      own("search"),
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
const SHIFTED: Readonly<Record<string, string>> = { ":": ";", '"': "'" };
const HELD = new Set(["control", "meta", "shift", "alt", "altgraph"]);
/** Keys that write nothing, so that they can be pressed with nothing else. */
const WRITES_NOTHING = /^(?:f\d{1,2}|escape)$/;

/** A letter's two forms differ; a sign and a digit have one. */
const isSign = (key: string) => key.length === 1 && key === key.toUpperCase();

function keyOf(event: KeyboardEvent): string {
  return (event.shiftKey && SHIFTED[event.key]) || event.key.toLowerCase();
}

/** Whether these are the keys that were pressed. */
export function isPressed(keys: Keys, event: KeyboardEvent): boolean {
  const key = keyOf(event);
  if (key !== keys.at(-1)) return false;
  if (keys.includes("mod") !== (event.metaKey || event.ctrlKey)) return false;
  if (keys.includes("alt") !== event.altKey) return false;
  // Some keyboards need Shift for a sign.
  return keys.includes("shift") === event.shiftKey || (isSign(key) && event.shiftKey);
}

/** The keys that are pressed, as they are kept; null while nothing but keys that are held with others is. */
export function keysIn(event: KeyboardEvent): Keys | null {
  const key = keyOf(event);
  if (HELD.has(key) || !key.trim() || key === "dead") return null;
  const held = [
    (event.metaKey || event.ctrlKey) && "mod",
    event.altKey && "alt",
    event.shiftKey && (!isSign(key) || key !== event.key) && "shift",
  ];
  return [...held.filter((one) => one !== false), key];
}

/** Whether writing a text never presses them. */
export const canBeHeld = (keys: Keys): boolean =>
  keys.includes("mod") || keys.includes("alt") || WRITES_NOTHING.test(keys.at(-1) ?? "");

/** What stands on the key. */
export function nameOf(key: string, isMac: boolean): string {
  if (key === "mod" && isMac) return "⌘";
  return t.keys[key] ?? key.toUpperCase();
}
