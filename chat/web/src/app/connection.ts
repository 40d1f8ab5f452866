/** The connection to the server: what comes in over it, and who hears of it. */
import { computed, signal } from "@preact/signals";
import type { PageEvent } from "../net/events";
import { LiveSocket, type SocketStatus } from "../net/socket";
import { isAnothers } from "../pages/forgetting";
import { keepShell } from "../pages/installing";
import type { ConversationEvent } from "../wire";
import { boot } from "./boot";
import { homePath } from "./place";
import { dropAbsence, toast } from "./toasts";

export const socketStatus = signal<SocketStatus>("connecting");

/** Whoever leaves or is suspended is waited for no more. */
const ENDED: readonly SocketStatus[] = ["forbidden", "access_suspended"];
/** And nothing of theirs runs. A session that ended ends no answer. */
const STOPPED: readonly SocketStatus[] = ["account_off", "workspace_suspended", ...ENDED];
const SHUT_OUT: readonly SocketStatus[] = ["signed_out", "two_steps_needed", ...STOPPED];

/** Whether the server has turned this person away: what they press here does nothing. */
export const isShutOut = computed(() => SHUT_OUT.includes(socketStatus.value));

function socketUrl(): string {
  const url = new URL(boot.urls.socket, location.href);
  url.protocol = url.protocol === "https:" || url.protocol === "wss:" ? "wss:" : "ws:";
  url.searchParams.set("person", boot.user.id);
  return url.href;
}

type HearChange = (kind: string, id: string) => void;
const onChange = new Set<HearChange>();

/** Hear that something of the workspace changed, by its kind and the id of its row. */
export function hearOfChanges(hear: HearChange): void {
  onChange.add(hear);
}

const onEvent = new Set<(event: ConversationEvent) => void>();

/** Hear what happens in conversations that this page follows. */
export function hearOfEvents(hear: (event: ConversationEvent) => void): void {
  onEvent.add(hear);
}

function take(event: PageEvent): void {
  switch (event.type) {
    case "workspace.changed":
      for (const hear of onChange) hear(event.kind, event.id);
      break;
    case "error":
      toast(event.message, "bad");
      break;
    case "accepted":
    case "pong":
      break;
    default:
      for (const hear of onEvent) hear(event);
  }
}

const onOpening = new Set<() => void>();

/** Hear that the connection is there, or back. */
export function hearOfOpening(hear: () => void): void {
  onOpening.add(hear);
}

const onReturn = new Set<() => void>();

/** Hear that the connection is back: changes may have been missed. */
export function hearOfReturn(hear: () => void): void {
  onReturn.add(hear);
}

type HearStop = (isOver: boolean) => void;
const onStop = new Set<HearStop>();

/** Hear that the server has stopped all that ran for this person, or also what waited for them, and tells nothing more. */
export function hearOfStop(hear: HearStop): void {
  onStop.add(hear);
}

let wasOpen = false;

export const socket = new LiveSocket({
  url: socketUrl(),
  most_bytes: boot.max_frame_bytes,
  onEvent: take,
  onStatus: (status) => {
    socketStatus.value = status;
    // The server says more than a page that was kept: such as where to sign in.
    if (boot.is_kept && isShutOut.value) location.reload();
    if (STOPPED.includes(status)) for (const hear of onStop) hear(ENDED.includes(status));
  },
  onOpen: () => {
    // What was kept has no token and may be of the release before. What was written is in this browser.
    // A page that somebody else left open would read and send with the session of who is signed in now.
    if (boot.is_kept || isAnothers(boot.user.id)) {
      location.reload();
      return;
    }
    dropAbsence();
    for (const hear of onOpening) hear();
    if (wasOpen) for (const hear of onReturn) hear();
    else keepShell(homePath, boot.user.id);
    wasOpen = true;
  },
});
