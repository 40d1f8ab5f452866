/** Lets browsers offer to install Trellis, and shows a page of ours where the server cannot be reached. */
export function startWorker(): void {
  // Not there on an address without TLS; and a browser may refuse, as private windows of some do.
  navigator.serviceWorker?.register("/worker.js").catch(() => undefined);
}
