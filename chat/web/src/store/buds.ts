/** The buds that one may ask. */
import { batch, signal } from "@preact/signals";
import { api } from "../app/boot";
import { hearOfChanges, hearOfReturn } from "../app/connection";
import { messageOf } from "../app/toasts";
import { readAgain } from "../net/reading-again";
import type { Bud } from "../wire";

export const buds = signal<Bud[] | null>(null);
/** The ids of those that answer in chats that have them, and in no new one. */
export const archivedBuds = signal<readonly string[]>([]);
export const budsProblem = signal<string | null>(null);

export async function loadBuds(): Promise<void> {
  try {
    const rows = await api.buds();
    batch(() => {
      buds.value = rows.filter((bud) => !bud.is_archived);
      archivedBuds.value = rows.filter((bud) => bud.is_archived).map((bud) => bud.id);
      budsProblem.value = null;
    });
  } catch (error) {
    budsProblem.value = messageOf(error);
  }
}

hearOfChanges((kind) => {
  if (kind === "bud.changed" || kind === "server.changed") readAgain("buds", loadBuds);
});
hearOfReturn(loadBuds);
