import { boot } from "../app/boot";

/** Whether the server would not take it. A letter outside of the first 65,536 of Unicode is two for the browser, and one there. */
export function isTooLong(text: string): boolean {
  const most = boot.max_message_characters;
  return text.length > most && [...text].length > most;
}
