/** Copying, for pages with and without the chat around them. */

/** Told on the window where the browser does not let us copy. */
export const COPY_BLOCKED = "trellis:copy-blocked";

/** Copy a text; gives whether it was done. */
export async function copyText(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    dispatchEvent(new CustomEvent(COPY_BLOCKED));
    return false;
  }
}
