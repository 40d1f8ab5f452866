import { boot } from "../app/boot";

/** Whether no message may be that long. A letter outside of the first 65,536 of Unicode is two here, and one for the server. */
export function isTooLong(text: string): boolean {
  const most = boot.max_message_characters;
  const words = text.trim();
  return words.length > most && [...words].length > most;
}
