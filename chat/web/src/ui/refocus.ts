/** Give the focus back to whatever had it, or where that has gone meanwhile, to the message field. */
export function refocus(before: HTMLElement | null): void {
  (before?.isConnected ? before : document.getElementById("composer-text"))?.focus();
}
