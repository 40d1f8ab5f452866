/** What a tab remembers of the chat while other pages are open in it. Where storage is forbidden, nothing is. */
const CHAT = "trellis.last_chat";
const BUD = "trellis.home_bud";

function note(key: string, value: string): void {
  try {
    sessionStorage.setItem(key, value);
  } catch {
    // Forbidden.
  }
}

function noted(key: string): string | null {
  try {
    return sessionStorage.getItem(key);
  } catch {
    return null;
  }
}

/** Remember which page of the chat is open. */
export const noteChat = (path: string): void => note(CHAT, path);

/** Remember the bud that the start page has chosen. */
export const noteHomeBud = (id: string | null): void => note(BUD, id ?? "");

export const notedHomeBud = (): string | null => noted(BUD) || null;

/** Let links to the chat lead to where it was left, if that was in the same workspace. */
export function leadBack(): void {
  const path = noted(CHAT);
  for (const link of document.querySelectorAll<HTMLAnchorElement>("a[data-last-chat]"))
    if (path?.startsWith(link.pathname)) link.href = path;
}
