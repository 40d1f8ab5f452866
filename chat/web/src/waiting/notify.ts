/** Notifications of the browser, for those who asked for them, while the page is in the background. */
import { signal } from "@preact/signals";
import { conversationPath, go } from "../app/place";
import common from "../texts/common";
import type { WaitingPlace } from "../wire";

const KEY = "trellis.notify";
export const canNotify = "Notification" in window;

function wanted(): boolean {
  try {
    return canNotify && Notification.permission === "granted" && localStorage.getItem(KEY) === "on";
  } catch {
    return false; // a browser may keep nothing
  }
}

export const isNotifying = signal(wanted());
const isDenied = (): boolean => canNotify && Notification.permission === "denied";
/** The browser notifies of nothing here; only its own settings can change that. */
export const isBlocked = signal(isDenied());

/** Switch them on or off; on needs the person's yes to the browser, which asks after a click alone. */
export async function setNotifying(isOn: boolean): Promise<void> {
  if (isOn && (await Notification.requestPermission()) !== "granted") {
    isNotifying.value = false;
    isBlocked.value = isDenied();
    return;
  }
  try {
    localStorage.setItem(KEY, isOn ? "on" : "off");
  } catch {
    // Then it holds as long as the page.
  }
  isNotifying.value = isOn;
}

/** What a notification is about. */
export interface About {
  id: string;
  title: string;
  open: () => void;
}

export const aboutChat = ({ id, title }: Pick<WaitingPlace, "id" | "title">): About => ({
  id,
  title: title || common.newChat,
  open: () => go(conversationPath(id)),
});

/** Tell of it, unless the person is looking. Several tabs tell once: a tag replaces what it told before. */
export function tell(words: string, about: About): void {
  if (!isNotifying.value || document.visibilityState === "visible") return;
  const notification = new Notification(words, { body: about.title, tag: `trellis-${about.id}` });
  notification.onclick = () => {
    notification.close();
    window.focus();
    about.open();
  };
}
