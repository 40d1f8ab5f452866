/** Chats on their way into a folder: one, also one that is dragged, or several chosen ones. */
import { computed, effect, signal } from "@preact/signals";
import { api } from "../app/boot";
import { messageAlone, toast, UNDO_MS } from "../app/toasts";
import { changeConversation } from "../store/conversations";
import { list, placeInList } from "../store/list";
import t from "../texts/folders";
import shell from "../texts/shell";
import type { Conversation } from "../wire";

/** Null: nothing is being chosen. */
export const selected = signal<ReadonlySet<string> | null>(null);

export function stopSelecting(): void {
  selected.value = null;
}

/** Only what is listed can be seen, and so be chosen: not what went elsewhere or was deleted on another device. */
effect(() => {
  const ids = selected.value;
  const rows = list.value;
  if (!ids?.size || !rows) return;
  const shown = new Set(rows.map((row) => row.id));
  const left = [...ids].filter((id) => shown.has(id));
  if (left.length < ids.size) selected.value = new Set(left);
});

/** Move chats; undone, each goes back to where it was. */
async function moveMany(rows: Conversation[], folderId: string | null): Promise<void> {
  const put = async (some: Conversation[], into: string | null) => {
    try {
      (
        await api.bulk(
          some.map((row) => row.id),
          "move",
          into,
        )
      ).forEach(placeInList);
      return true;
    } catch (error) {
      toast(messageAlone(error), "bad");
      return false;
    }
  };
  if (!(await put(rows, folderId))) return;
  stopSelecting();
  const run = () => {
    for (const [before, some] of Map.groupBy(rows, (row) => row.folder_id)) void put(some, before);
  };
  const about = rows.map((row) => row.id);
  toast(t.moved(rows.length), "ok", { label: shell.undo, run, about }, UNDO_MS);
}

/** Move chats, with a way back. */
export async function move(rows: Conversation[], folderId: string | null): Promise<void> {
  const [only] = rows;
  if (!only) return;
  if (rows.length > 1) return moveMany(rows, folderId);
  if (!(await changeConversation(only.id, { folder_id: folderId }))) return;
  const run = () => void changeConversation(only.id, { folder_id: only.folder_id });
  toast(t.moved(1), "ok", { label: shell.undo, run, about: [only.id] }, UNDO_MS);
}

/** The chat that is being dragged. */
const dragged = signal<Conversation | null>(null);
/** Over which folder; null: over what takes it out of its folder. */
const over = signal<string | null | undefined>(undefined);

/** What lets a chat's link be dragged. Links can be dragged anyway, so this changes nothing for fingers and keys. */
export function dragsChat(row: Conversation) {
  if (row.is_temporary || row.is_archived) return {};
  return {
    // A moment later: a browser gives a drag up whose page changes while it begins.
    onDragStart: () => setTimeout(() => (dragged.value = row)),
    onDragEnd: () => setTimeout(stopDragging),
  };
}

function stopDragging(): void {
  dragged.value = null;
  over.value = undefined;
}

/** Whether a chat is dragged that stands in a folder. */
export const isTakingOut = computed(() => Boolean(dragged.value?.folder_id));

/** What lets a row of the sidebar take a chat that is dragged. */
export function takesChat(folderId: string | null) {
  const row = dragged.value;
  if (!row || row.folder_id === folderId) return {};
  return {
    "data-takes": over.value === folderId ? "over" : "yes",
    onDragOver: (event: DragEvent) => {
      event.preventDefault();
      if (event.dataTransfer) event.dataTransfer.dropEffect = "move";
      over.value = folderId;
    },
    onDragLeave: (event: DragEvent) => {
      const to = event.relatedTarget as Node | null;
      if (!(event.currentTarget as Element).contains(to) && over.value === folderId) over.value = undefined;
    },
    onDrop: (event: DragEvent) => {
      event.preventDefault();
      stopDragging();
      void move([row], folderId);
    },
  };
}
