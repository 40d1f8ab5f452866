/** Chats on their way into a folder, one or several chosen ones. */
import { effect, signal } from "@preact/signals";
import { api } from "../boot";
import { changeConversation } from "../conversations";
import { list, placeInList } from "../store/list";
import t from "../texts/folders";
import shell from "../texts/shell";
import { messageAlone, toast, UNDO_MS } from "../toasts";
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
