/** Keeps the list of what waits up to date, and tells of it. */
import { effect } from "@preact/signals";
import { boot } from "../app/boot";
import { hearOfChanges, hearOfStop, socketStatus } from "../app/connection";
import { type Reading, readAgain } from "../net/reading-again";
import { hearOfRows } from "../store/list";
import t from "../texts/waiting";
import { aboutChat, tell } from "./notify";
import { fallBehind, loadWaiting, showCount, tellWhoDecides, waitingItems } from "./state";

export function watchWaiting(): void {
  const soon = ({ isOwn }: Reading) => {
    fallBehind();
    readAgain("waiting", loadWaiting, { isOwn, isReadUnseen: true });
  };
  hearOfRows((now, before) => {
    const isListed = waitingItems.peek()?.some((item) => item.conversation?.id === now.id);
    if (now.status === "waiting" || before?.status === "waiting" || isListed) soon({ isOwn: true });
    if (before?.status === "running" && now.status === "idle") {
      tell(t.answered, aboutChat(now));
    }
  });
  hearOfChanges((kind) => {
    if (kind === "request.changed" && boot.workspace.decides_requests) soon({ isOwn: false });
  });
  hearOfStop((isOver) => {
    if (isOver) waitingItems.value = [];
  });
  // With each new connection: changes may have been missed.
  effect(() => {
    if (socketStatus.value === "open") soon({ isOwn: true });
  });
  showCount();
  tellWhoDecides();
}
