import { effect, signal, untracked } from "@preact/signals";
import { useCallback, useEffect, useState } from "preact/hooks";
import { api, boot } from "../app/boot";
import { hearOfChanges, hearOfReturn } from "../app/connection";
import { toast } from "../app/toasts";
import { whole } from "../formats";
import { readAgain } from "../net/reading-again";
import { personal } from "../pages/forgetting";
import chat from "../texts/chat";
import type { Draft } from "../wire";
import { keyOf as keyOfPicked, type Picked, withPicked } from "./attachments";
import { isTooLong } from "./lengths";
import { merged } from "./merging";
import { picked } from "./picked";
import { isNextTemporary, isTemporary } from "./temporary";

const PAUSE_MS = 1_200;
/** The draft of the chat that is about to begin. */
export const HOME = "home";

/** Whether it stays in this browser: what is written in a temporary chat, or for the next one if that is temporary. */
const isPrivate = (name: string): boolean => (name === HOME ? isNextTemporary.value : isTemporary(name));

/** In this browser: the text, what goes along, and when that was written. It is kept at once, and on the server after a pause. */
function keyOf(name: string): string {
  // No other tab takes it for the usual draft of the start page.
  const slot = name === HOME && isPrivate(name) ? `${name}.temporary` : name;
  return `trellis.draft.${boot.user.id}.${boot.workspace.slug}.${slot}`;
}
const chosenKeyOf = (name: string): string => `${keyOf(name)}.chosen`;
const timeKeyOf = (name: string): string => `${keyOf(name)}.at`;
/** And when what the server has of it was written, which version that is, and its text; by the key of the text here. */
const keptKeyOf = (slot: string): string => `${slot}.kept`;
const versionKeyOf = (slot: string): string => `${slot}.version`;
const baseKeyOf = (slot: string): string => `${slot}.base`;

/** What stands in a message field, and what the message takes along. */
interface Written {
  text: string;
  attachments: readonly Picked[];
}

function stored(key: string): string {
  try {
    return personal.getItem(key) ?? "";
  } catch {
    return "";
  }
}

function read(name: string): Written {
  const list = stored(chosenKeyOf(name));
  return { text: stored(keyOf(name)), attachments: list === "" ? [] : (JSON.parse(list) as Picked[]) };
}

function timeOf(key: string): number {
  try {
    return Number(personal.getItem(key) ?? 0);
  } catch {
    return 0;
  }
}

const writtenAt = (name: string): number => timeOf(timeKeyOf(name));

/** The version of the server's that this browser has seen; 0: none. */
const versionOf = (slot: string): number => timeOf(versionKeyOf(slot));

/** Whether something was written that the server does not have. */
const isUnsent = (name: string): boolean => writtenAt(name) !== timeOf(keptKeyOf(keyOf(name)));

/** What is written here has grown out of this version of the server's. */
function noteSeen(slot: string, { version, text }: Draft): void {
  try {
    personal.setItem(versionKeyOf(slot), String(version));
    personal.setItem(baseKeyOf(slot), text);
  } catch {
    // As in `write`.
  }
}

function noteKept(slot: string, at: number): void {
  try {
    personal.setItem(keptKeyOf(slot), String(at));
  } catch {
    // As in `write`.
  }
}

/** What is being written there. */
export const draftOf = (name: string): string => read(name).text;

/** Where something is written and not sent. */
export const unsent = signal<ReadonlySet<string>>(new Set());

function mark(name: string, { text, attachments }: Written): void {
  const isUnsent = text.trim() !== "" || attachments.length > 0;
  if (unsent.peek().has(name) === isUnsent) return;
  const others = [...unsent.peek()].filter((one) => one !== name);
  unsent.value = new Set(isUnsent ? [...others, name] : others);
}

/** Counts the drafts that were written from outside of their field. */
const written = signal(0);

function write(name: string, next: Written, at: number): void {
  mark(name, next);
  const keep = (key: string, value: string) =>
    value === "" ? personal.removeItem(key) : personal.setItem(key, value);
  try {
    personal.setItem(timeKeyOf(name), String(at));
    keep(keyOf(name), next.text);
    keep(chosenKeyOf(name), next.attachments.length > 0 ? JSON.stringify(next.attachments) : "");
  } catch {
    // A full or forbidden storage costs the draft on reload, nothing more.
  }
}

/** Those that are too long for the server, of which the person knows. */
const overlong = new Set<string>();

const timers = new Map<string, ReturnType<typeof setTimeout>>();

/** One after the other: what is on its way is seen by the one behind it. */
const sending = new Map<string, Promise<void>>();

/** Read now what is to be kept: the start page may soon have another draft. */
function send(name: string): Promise<void> {
  timers.delete(name);
  const [slot, at, said] = [keyOf(name), writtenAt(name), read(name)];
  const next = (sending.get(name) ?? Promise.resolve()).then(() => keep(name, slot, at, said));
  sending.set(name, next);
  return next;
}

async function keep(name: string, slot: string, at: number, { text, attachments }: Written): Promise<void> {
  const isHere = () => keyOf(name) === slot;
  if (timers.has(name) && isHere()) return; // what was written since goes with that
  if (isTooLong(text)) {
    if (!overlong.has(slot)) toast(chat.draftTooLong(whole(boot.max_message_characters)), "info", null, 9000);
    overlong.add(slot);
    return;
  }
  overlong.delete(slot);
  const written_at = new Date(at).toISOString();
  const base_version = versionOf(slot);
  try {
    const conversation_id = name === HOME ? null : name;
    const values = { conversation_id, text, attachments: [...attachments], written_at, base_version };
    const kept = await api.keepDraft(values);
    if (kept.text === text && isSame(kept.attachments as Picked[], attachments)) {
      noteSeen(slot, kept);
      noteKept(slot, at);
    } else if (base_version !== kept.version && versionOf(slot) === kept.version) {
      // Another tab of this browser has kept it meanwhile: what is here has grown out of that.
      if (isHere()) later(name);
    } else if (isHere()) {
      take(name, kept);
      written.value += 1;
    }
  } catch {
    // It is still here, and goes with the next change.
  }
}

function later(name: string): void {
  clearTimeout(timers.get(name));
  timers.set(
    name,
    setTimeout(() => void send(name), PAUSE_MS),
  );
}

function change(name: string, next: Partial<Written>): void {
  write(name, { ...read(name), ...next }, Date.now());
  if (!isPrivate(name)) later(name);
}

const isSame = (some: readonly Picked[], others: readonly Picked[]): boolean =>
  String(some.map(keyOfPicked)) === String(others.map(keyOfPicked));

/** What was written elsewhere and not seen here. Pure. */
export const unseen = (drafts: readonly Draft[], versionOf: (name: string) => number): Draft[] =>
  drafts.filter((one) => one.version !== versionOf(one.conversation_id ?? HOME));

/** Take a draft of another device; what was written here and not kept yet comes together with it. */
function take(name: string, draft: Draft): void {
  const slot = keyOf(name);
  const theirs: Written = { text: draft.text, attachments: draft.attachments as Picked[] };
  const ours = read(name);
  const both: Written = isUnsent(name)
    ? {
        text: merged(stored(baseKeyOf(slot)), theirs.text, ours.text),
        attachments: ours.attachments.reduce(withPicked, theirs.attachments),
      }
    : theirs;
  noteSeen(slot, draft);
  if (both.text !== theirs.text || both.attachments.length > theirs.attachments.length) {
    if (both.text !== ours.text) toast(chat.mergedDraft);
    change(name, both);
  } else {
    const at = Date.parse(draft.written_at);
    write(name, theirs, at);
    noteKept(slot, at);
  }
  showChosen(name);
}

/** Have the message field show what its draft takes along. */
function showChosen(name: string): void {
  picked.value = { ...picked.peek(), [name]: read(name).attachments };
}

/** Keep what is chosen or put back with the draft. */
function followChosen(): void {
  effect(() => {
    const all = Object.entries(picked.value);
    untracked(() => {
      for (const [name, list] of all) {
        if (!isSame(read(name).attachments, list)) change(name, { attachments: list });
      }
    });
  });
}

/** Take what was written on other devices. */
export async function loadDrafts(): Promise<void> {
  try {
    const drafts = await api.drafts();
    const usual = drafts.filter((one) => !isPrivate(one.conversation_id ?? HOME));
    const nameOf = (one: Draft) => one.conversation_id ?? HOME;
    const found = unseen(usual, (name) => versionOf(keyOf(name))).filter((one) => !timers.has(nameOf(one)));
    for (const name of usual.map(nameOf)) {
      // This page was closed before it could say so.
      if (isUnsent(name) && !timers.has(name) && !found.some((one) => nameOf(one) === name)) void send(name);
    }
    for (const one of found) take(nameOf(one), one);
    for (const { conversation_id } of usual) mark(conversation_id ?? HOME, read(conversation_id ?? HOME));
    if (found.length > 0) written.value += 1;
  } catch {
    // What this browser has is there.
  }
}

/** Send what waits for a pause, since the page is about to go. */
export function sendDrafts(): void {
  for (const [name, timer] of [...timers]) {
    clearTimeout(timer);
    void send(name);
  }
}

/** What was written elsewhere, shown in the fields of this page too: another tab of this browser has kept it already. */
async function showDrafts(): Promise<void> {
  await loadDrafts();
  written.value += 1;
  for (const name of Object.keys(picked.peek())) showChosen(name);
}

/** Show at once what another tab of this browser has written: what is typed here next is added to it. */
function followTabs(): void {
  const prefix = `trellis.draft.${boot.user.id}.${boot.workspace.slug}.`;
  addEventListener("storage", ({ key }) => {
    const [name = "", part = "text"] = key?.startsWith(prefix) ? key.slice(prefix.length).split(".") : [];
    if (name === "" || (part !== "text" && part !== "chosen")) return;
    mark(name, read(name));
    if (part === "chosen") showChosen(name);
    else written.value += 1;
  });
}

/** At once where the page is open, and whenever somebody comes back to it. */
export function followDrafts(): void {
  followChosen();
  followTabs();
  void loadDrafts();
  hearOfChanges((kind) => {
    if (kind === "draft.changed") readAgain("drafts", showDrafts, { isOwn: true });
  });
  hearOfReturn(() => void showDrafts());
  document.addEventListener("visibilitychange", () => {
    if (document.visibilityState === "visible") void loadDrafts();
    else sendDrafts();
  });
}

/** Put a text into a composer, whether or not it is on the page. */
export function keepDraft(name: string, text: string): void {
  change(name, { text });
  written.value += 1;
}

/** Take what was typed on the start page while a chat began along into that chat. */
export function moveTyped(to: string): void {
  const { text } = read(HOME);
  if (text === "") return;
  change(HOME, { text: "" });
  keepDraft(to, [draftOf(to), text].filter(Boolean).join("\n\n"));
}

/** Say whether the next chat is temporary; what is being written stays in the field. */
export function setNextTemporary(isTemporary: boolean): void {
  if (isTemporary === isNextTemporary.value) return;
  const draft = read(HOME);
  change(HOME, { text: "", attachments: [] });
  sendDrafts(); // at once, since later there is nothing to read
  isNextTemporary.value = isTemporary;
  change(HOME, draft);
  written.value += 1;
}

/** What somebody was writing, kept until it is sent. */
export function useDraft(name: string): [string, (text: string) => void] {
  const [text, setText] = useState(() => draftOf(name));
  const count = written.value;
  // Read anew also when it was written from outside.
  useEffect(() => setText(draftOf(name)), [name, count]);
  useEffect(() => {
    if (!picked.peek()[name]) showChosen(name);
  }, [name]);
  const put = useCallback(
    (next: string) => {
      setText(next);
      change(name, { text: next });
    },
    [name],
  );
  return [text, put];
}
