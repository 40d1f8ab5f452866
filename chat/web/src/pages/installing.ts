/** Lets browsers offer to install Trellis, and shows a page of ours where the server cannot be reached. */
export function startWorker(): void {
  // Not there on an address without TLS; and a browser may refuse, as private windows of some do.
  navigator.serviceWorker?.register("/worker.js").catch(() => undefined);
}

/** Have the chat of a workspace open for this person where the server cannot be reached. */
export function keepShell(home: string, person: string): void {
  const workers = navigator.serviceWorker;
  const ask = () => workers.ready.then(({ active }) => active?.postMessage({ type: "keep", home, person }));
  if (!workers) return;
  void ask();
  // A new release comes with a new worker, which has nothing yet.
  workers.addEventListener("controllerchange", ask);
}
