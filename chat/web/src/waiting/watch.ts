/** Keeps the list of what waits up to date, and tells of it. */
import { effect } from "@preact/signals";
import { hearOfRows, socketStatus } from "../app";
import t from "../texts/waiting";
import { tell } from "./notify";
import { loadWaiting, showCount, waitingItems } from "./state";

const SETTLE_MS = 250;

export function watchWaiting(): void {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const soon = () => {
    clearTimeout(timer);
    timer = setTimeout(loadWaiting, SETTLE_MS);
  };
  hearOfRows((now, before) => {
    const isListed = waitingItems.peek()?.some((item) => item.conversation.id === now.id);
    if (now.status === "waiting" || before?.status === "waiting" || isListed) soon();
    if (before?.status === "running" && now.status === "idle") {
      tell(t.answered, { id: now.id, title: now.title, avatar: now.bud.avatar });
    }
  });
  // With each new connection: changes may have been missed.
  effect(() => {
    if (socketStatus.value === "open") soon();
  });
  showCount();
}
