/** What begins with the page. */

import { boot } from "../app/boot";
import { hearOfChanges, socket } from "../app/connection";
import { changedResources } from "./picked";
import "./conversations";
import { loadNotices, placeNotices } from "../app/notices";
import { arrive } from "../app/place";
import { tellMessages, toast, UNDO_MS } from "../app/toasts";
import { startLayers } from "../browser/layers";
import { readAgain } from "../net/reading-again";
import { forgetOthers, hearOfAnother } from "../pages/forgetting";
import shell from "../texts/shell";
import { loadBuds } from "./buds";
import { loadList } from "./list";

export const hearing = (kind: string, id: string): void => {
  if (kind === "resource.changed") changedResources.value = { ...changedResources.value, [id]: Date.now() };
  else if (kind === "notice.changed") readAgain("notices", loadNotices);
  else if (kind === "membership.changed")
    toast(shell.roleChanged, "info", { label: shell.reload, run: () => location.reload() }, UNDO_MS);
};
hearOfChanges(hearing);

export function startApp(): void {
  startLayers(arrive);
  // Who is signed in now, only the server knows.
  if (!boot.is_kept) {
    forgetOthers(boot.user.id);
    hearOfAnother(boot.user.id, () => location.reload());
  }
  socket.start();
  if (boot.is_kept) return;
  tellMessages(boot.messages);
  void loadBuds();
  placeNotices(boot.urls.notices, boot.csrf_token);
  void loadNotices();
  void loadList();
}
