/** The list of conversations: one folder's, the archived ones, or all. */
import { batch, signal } from "@preact/signals";
import { api } from "../app/boot";
import { hearOfChanges, hearOfReturn, hearOfStop } from "../app/connection";
import { messageOf, toast } from "../app/toasts";
import { readAgain } from "../net/reading-again";
import type { Conversation } from "../wire";

export const list = signal<Conversation[] | null>(null);
export const listProblem = signal<string | null>(null);
export const listNext = signal<string | null>(null);
export const showsArchived = signal(false);
/** The folder whose chats are listed; null: all. */
export const openFolder = signal<string | null>(null);

let listRequest = 0;

export async function loadList(): Promise<void> {
  listRequest += 1;
  const mine = listRequest;
  try {
    const page = await api.conversations({ archived: showsArchived.value, folder: openFolder.value });
    if (mine !== listRequest) return;
    batch(() => {
      list.value = page.results;
      listNext.value = page.next;
      listProblem.value = null;
    });
  } catch (error) {
    if (mine === listRequest) listProblem.value = messageOf(error);
  }
}

export async function loadMore(): Promise<void> {
  if (!listNext.value) return;
  const mine = listRequest;
  try {
    const page = await api.conversations({ page: listNext.value });
    if (mine !== listRequest) return; // another list is shown by now
    batch(() => {
      const known = new Set(list.value?.map((row) => row.id));
      list.value = [...(list.value ?? []), ...page.results.filter((row) => !known.has(row.id))];
      listNext.value = page.next;
    });
  } catch (error) {
    toast(messageOf(error), "bad");
  }
}

export function setShowsArchived(value: boolean): void {
  batch(() => {
    showsArchived.value = value;
    openFolder.value = null;
    list.value = null;
  });
  void loadList();
}

export function setOpenFolder(id: string | null): void {
  batch(() => {
    openFolder.value = id;
    showsArchived.value = false;
    list.value = null;
  });
  void loadList();
}

type HearRow = (now: Conversation, before: Conversation | undefined) => void;
const onRow = new Set<HearRow>();

/** Hear of each conversation that changes, with its row from before. */
export function hearOfRows(hear: HearRow): void {
  onRow.add(hear);
}

/** Tell who hears of rows, before the list changes: what they know of this one is out of date. */
function tellOfRow(row: Conversation): void {
  const before = list.value?.find((other) => other.id === row.id);
  onRow.forEach((hear) => hear(row, before));
}

/** Put one row into the list as it is now, or take it out where it no longer belongs. */
export function placeInList(row: Conversation): void {
  if (!list.value) return;
  const others = list.value.filter((other) => other.id !== row.id);
  tellOfRow(row);
  const isListed =
    !row.is_temporary &&
    row.is_archived === showsArchived.value &&
    (!openFolder.value || row.folder_id === openFolder.value);
  list.value = isListed ? [row, ...others] : others;
}

/** The same for a row that may be the one that is listed: it keeps its place then. */
export function keepInList(row: Conversation): void {
  const known = list.value?.find((other) => other.id === row.id);
  if (!known || known.updated_at !== row.updated_at) placeInList(row);
  else if (list.value) {
    if (known.status !== row.status) tellOfRow(row);
    list.value = list.value.map((other) => (other.id === row.id ? row : other));
  }
}

/** Take a row out of the list. */
export function dropFromList(id: string): void {
  if (list.value) list.value = list.value.filter((row) => row.id !== id);
}

hearOfChanges((kind) => {
  if (kind === "import.changed") readAgain("imports", loadList, { isOwn: true });
});
hearOfReturn(loadList);
hearOfStop((isOver) => {
  const ended = (row: Conversation) => row.status === "running" || isOver;
  list.value = list.value?.map((row) => (ended(row) ? { ...row, status: "idle" } : row)) ?? null;
});
