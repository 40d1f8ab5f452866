import { effect, signal, untracked } from "@preact/signals";
import { useCallback, useEffect, useState } from "preact/hooks";
import { api, boot, hearOfChanges, hearOfReturn, nudge, picked, place } from "../app";
import { personal } from "../forgetting";
import type { Draft } from "../wire";
import { keyOf as keyOfPicked, type Picked, withPicked } from "./attachments";
import { isNextTemporary, isOpenTemporary } from "./temporary";

const PAUSE_MS = 1_200;
/** The draft of the chat that is about to begin. */
export const HOME = "home";

/** Whether it stays in this browser: what is written in a temporary chat, or for the next one if that is temporary. */
const isPrivate = (name: string): boolean =>
  name === HOME ? isNextTemporary.value : name === place.value && isOpenTemporary();

/** In this browser: the text, what goes along, and when that was written. It is kept at once, and on the server after a pause. */
function keyOf(name: string): string {
  // No other tab takes it for the usual draft of the start page.
  const slot = name === HOME && isPrivate(name) ? `${name}.temporary` : name;
  return `trellis.draft.${boot.user.id}.${boot.workspace.slug}.${slot}`;
}
const chosenKeyOf = (name: string): string => `${keyOf(name)}.chosen`;
const timeKeyOf = (name: string): string => `${keyOf(name)}.at`;
/** And when what the server has of it was written. */
const keptKeyOf = (name: string): string => `${keyOf(name)}.kept`;

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

function noteKept(name: string, at: number): void {
  try {
    personal.setItem(keptKeyOf(name), String(at));
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

const timers = new Map<string, ReturnType<typeof setTimeout>>();

async function send(name: string): Promise<void> {
  timers.delete(name);
  const at = writtenAt(name);
  const written_at = new Date(at).toISOString();
  try {
    const { text, attachments } = read(name);
    const conversation_id = name === HOME ? null : name;
    await api.keepDraft({ conversation_id, text, attachments: [...attachments], written_at });
    noteKept(name, at);
  } catch {
    // It is still here, and goes with the next change.
  }
}

function change(name: string, next: Partial<Written>): void {
  write(name, { ...read(name), ...next }, Date.now());
  if (isPrivate(name)) return;
  clearTimeout(timers.get(name));
  timers.set(
    name,
    setTimeout(() => void send(name), PAUSE_MS),
  );
}

interface Later extends Written {
  name: string;
  at: number;
}

/** What was written elsewhere and later than here. Pure. */
export function newer(drafts: readonly Draft[], at: (name: string) => number): Later[] {
  return drafts
    .map((one) => ({
      name: one.conversation_id ?? HOME,
      text: one.text,
      attachments: one.attachments as Picked[],
      at: Date.parse(one.written_at),
    }))
    .filter((one) => one.at > at(one.name));
}

/** Two drafts of one message, of which neither writer has seen the other: nothing of them is lost. Pure. */
export function together(theirs: string, ours: string): string {
  if (theirs.includes(ours.trim())) return theirs;
  return ours.includes(theirs.trim()) ? ours : `${theirs}\n\n${ours}`;
}

/** Take a later draft of another device; what was written here without a connection stays beside it. */
function take({ name, at, ...theirs }: Later): void {
  const isUnsent = writtenAt(name) !== timeOf(keptKeyOf(name));
  const ours = read(name);
  const both: Written = isUnsent
    ? {
        text: together(theirs.text, ours.text),
        attachments: ours.attachments.reduce(withPicked, theirs.attachments),
      }
    : theirs;
  if (both.text !== theirs.text || both.attachments.length > theirs.attachments.length) {
    change(name, both);
  } else {
    write(name, theirs, at);
    noteKept(name, at);
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
        const before = read(name).attachments.map(keyOfPicked);
        if (String(before) !== String(list.map(keyOfPicked))) change(name, { attachments: list });
      }
    });
  });
}

/** Take what was written on other devices. */
export async function loadDrafts(): Promise<void> {
  try {
    const drafts = await api.drafts();
    const usual = drafts.filter((one) => !isPrivate(one.conversation_id ?? HOME));
    const found = newer(usual, writtenAt).filter(({ name }) => !timers.has(name));
    for (const { conversation_id, written_at } of usual) {
      const name = conversation_id ?? HOME;
      // This page was closed before it could say so.
      if (writtenAt(name) > Date.parse(written_at) && !timers.has(name)) void send(name);
    }
    for (const one of found) take(one);
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

/** At once where the page is open, and whenever somebody comes back to it. */
export function followDrafts(): void {
  followChosen();
  void loadDrafts();
  hearOfChanges((kind) => {
    if (kind === "draft.changed") nudge("drafts", showDrafts);
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

/** Take what is written on the start page along, while `move` says whether the chat that begins there is temporary. */
export function moveHomeDraft(move: () => void): void {
  const draft = read(HOME);
  change(HOME, { text: "", attachments: [] });
  sendDrafts(); // at once, since later there is nothing to read
  move();
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
