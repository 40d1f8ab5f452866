/** The bell's content: read at the start, and again when the server says that it has changed. */
import { signal } from "@preact/signals";
import { sendRead } from "../pages/reading-notices";

interface Notice {
  id: string;
  title: string;
  text: string;
  /** A path of ours, or nothing. */
  url: string;
  at: string;
  is_read: boolean;
}

/** Null: they were not read yet. */
export const notices = signal<Notice[] | null>(null);
/** Whether they could not be read, or not be marked as read, when last asked for. */
export const hasNoticesFailed = signal(false);
export const unread = signal(0);

let place: { url: string; csrfToken: string } | null = null;

/** Where the notices are; without an address there is no bell. */
export function placeNotices(url: string | null, csrfToken: string): void {
  place = url ? { url, csrfToken } : null;
}

/** A person opened this one. */
export function readNotice(id: string): void {
  const opened = notices.value?.find((one) => one.id === id);
  if (!place || !opened || opened.is_read) return;
  notices.value = (notices.value ?? []).map((one) => (one.id === id ? { ...one, is_read: true } : one));
  unread.value = Math.max(0, unread.value - 1);
  void sendRead(`${place.url}read/`, place.csrfToken, id);
}

/** Ask for them; a failure is said, and leaves what is shown. */
export async function loadNotices({ marksRead = false } = {}): Promise<void> {
  if (!place) return;
  try {
    if (marksRead) {
      const marked = await fetch(`${place.url}read/?format=json`, {
        method: "POST",
        headers: { "X-CSRFToken": place.csrfToken },
        credentials: "same-origin",
      });
      if (!marked.ok) throw new Error(`${marked.status}`);
    }
    const answer = await fetch(`${place.url}?format=json`, { credentials: "same-origin" });
    if (!answer.ok) throw new Error(`${answer.status}`);
    const body = (await answer.json()) as { unread: number; notices: Notice[] };
    notices.value = body.notices;
    unread.value = body.unread;
    hasNoticesFailed.value = false;
  } catch {
    hasNoticesFailed.value = true; // the next nudge or page asks again
  }
}
