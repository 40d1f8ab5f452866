/** The way back from other pages to the chat one came from, in the same tab. */
const KEY = "trellis.last_chat";

/** Remember which page of the chat is open. */
export function noteChat(path: string): void {
  try {
    sessionStorage.setItem(KEY, path);
  } catch {
    // Forbidden: the link leads to the start page.
  }
}

/** Let links to the chat lead to where it was left, if that was in the same workspace. */
export function leadBack(): void {
  let path: string | null = null;
  try {
    path = sessionStorage.getItem(KEY);
  } catch {
    return;
  }
  for (const link of document.querySelectorAll<HTMLAnchorElement>("a[data-last-chat]"))
    if (path?.startsWith(link.pathname)) link.href = path;
}
