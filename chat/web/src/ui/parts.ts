/** Parts of the page whose code comes when it is needed. */

/** There is no connection, so nothing was asked for. */
class Away extends Error {}

/**
 * Fetch a part's code. Without a connection it is not asked for: browsers remember until the page is loaded anew that
 * a module could not be fetched, and would refuse it once the connection is back. One that the browser keeps
 * (`isKept`) comes all the same.
 */
export async function fetchPart<Part>(load: () => Promise<Part>, isKept = false): Promise<Part> {
  if (!navigator.onLine && !isKept) throw new Away();
  return load();
}

/** Try once the connection is back; gives what ends the waiting. */
export function whenBack(again: () => void): () => void {
  addEventListener("online", again, { once: true });
  return () => removeEventListener("online", again);
}
