/** What begins with the page. */

import { changedResources } from "../chat/composer/picked";
import { boot } from "./boot";
import { hearOfChanges, socket } from "./connection";
import "./conversations";
import { startLayers } from "../browser/layers";
import { readAgain } from "../net/reading-again";
import { forgetOthers, hearOfAnother } from "../pages/forgetting";
import { loadBuds } from "../store/buds";
import { loadList } from "../store/list";
import shell from "../texts/shell";
import { loadNotices, placeNotices } from "./notices";
import { arrive } from "./place";
import { tellMessages, toast, UNDO_MS } from "./toasts";

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
