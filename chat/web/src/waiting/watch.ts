/** Keeps the list of what waits up to date, and tells of it. */
import { effect } from "@preact/signals";
import { boot } from "../app/boot";
import { hearOfChanges, hearOfStop, socketStatus } from "../app/connection";
import { hearOfRows } from "../store/list";
import t from "../texts/waiting";
import { aboutChat, tell } from "./notify";
import { fallBehind, loadWaiting, showCount, tellWhoDecides, waitingItems } from "./state";

const SETTLE_MS = 250;

export function watchWaiting(): void {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const soon = () => {
    fallBehind();
    clearTimeout(timer);
    timer = setTimeout(loadWaiting, SETTLE_MS);
  };
  hearOfRows((now, before) => {
    const isListed = waitingItems.peek()?.some((item) => item.conversation?.id === now.id);
    if (now.status === "waiting" || before?.status === "waiting" || isListed) soon();
    if (before?.status === "running" && now.status === "idle") {
      tell(t.answered, aboutChat(now));
    }
  });
  hearOfChanges((kind) => {
    if (kind === "request.changed" && boot.workspace.decides_requests) soon();
  });
  hearOfStop((isOver) => {
    if (isOver) waitingItems.value = [];
  });
  // With each new connection: changes may have been missed.
  effect(() => {
    if (socketStatus.value === "open") soon();
  });
  showCount();
  tellWhoDecides();
}
