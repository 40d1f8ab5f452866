/** The workspace's socket of a page that Django draws: one, however many parts of the page listen. */
import { LiveSocket } from "./socket";

interface Listener {
  /** Something changed: its kind, such as `server.changed`, and the id of the row. */
  onChange: (kind: string, id: string) => void;
  /** The connection is back; changes may have been missed. */
  onReturn: () => void;
}

const listeners = new Set<Listener>();
let socket: LiveSocket | null = null;
let wasOpen = false;

function open(path: string): void {
  const url = new URL(path, location.href);
  if (document.querySelector("[data-shows-checks]")) url.searchParams.set("checks", "yes");
  url.protocol = url.protocol === "https:" ? "wss:" : "ws:";
  socket = new LiveSocket({
    url: url.href,
    onStatus: () => undefined,
    onOpen: () => {
      if (wasOpen) for (const one of listeners) one.onReturn();
      wasOpen = true;
    },
    onEvent: (event) => {
      if (event.type !== "workspace.changed") return;
      for (const one of listeners) one.onChange(event.kind, event.id);
    },
  });
  socket.start();
}

/** Hear of changes in the workspace that the bar names. Without one there is nothing to hear. */
export function hearOfWorkspace(listener: Listener): void {
  const path = document.querySelector<HTMLElement>(".topbar[data-socket]")?.dataset.socket;
  if (!path) return;
  listeners.add(listener);
  if (!socket) open(path);
}

// A browser keeps a page for "back" only while nothing is connected.
addEventListener("pagehide", () => {
  socket?.stop();
  socket = null;
});
addEventListener("pageshow", (event) => {
  const path = document.querySelector<HTMLElement>(".topbar[data-socket]")?.dataset.socket;
  if (event.persisted && path && listeners.size && !socket) open(path);
});
