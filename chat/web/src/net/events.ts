/** Frames of the socket, as they come in. */
import { type Check, EVENT_TYPES, type ServerEvent } from "../wire";

/** What a page hears of; checks are answered before. */
export type PageEvent = Exclude<ServerEvent, Check>;

/** Read one frame; null for anything outside the closed set of our own events. */
export function parseEvent(frame: unknown): ServerEvent | null {
  if (typeof frame !== "string") return null;
  try {
    const value: unknown = JSON.parse(frame);
    if (typeof value !== "object" || value === null || !("type" in value)) return null;
    return typeof value.type === "string" && EVENT_TYPES.has(value.type) ? (value as ServerEvent) : null;
  } catch {
    return null;
  }
}
