/** What a tab remembers until it is closed. Where storage is forbidden, it remembers nothing. */

/** Remember a value; an empty one is none. */
export function note(key: string, value: string): void {
  try {
    sessionStorage.setItem(key, value);
  } catch {
    // Forbidden, or full.
  }
}

/** The value that was remembered; null: none was, or it cannot be. */
export function noted(key: string): string | null {
  try {
    return sessionStorage.getItem(key);
  } catch {
    return null;
  }
}
