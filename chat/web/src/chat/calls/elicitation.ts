/** What servers ask beside forms: addresses to open, and questions to the model. Pure. */
import { isObject } from "../../forms/schema";
import type { Json, JsonObject } from "../../wire";

const textOf = (value: Json | undefined): string => (typeof value === "string" ? value : "");

/** An address in three pieces, so that its host can be marked. */
export function markHost(url: string, host: string): [string, string, string] {
  const at = url.toLowerCase().indexOf(host.toLowerCase(), url.indexOf("//") + 2);
  if (host === "" || at < 0) return [url, "", ""];
  return [url.slice(0, at), url.slice(at, at + host.length), url.slice(at + host.length)];
}

/** Only such an address gets a button. */
export function canOpen(url: string): boolean {
  try {
    const parsed = new URL(url);
    return parsed.protocol === "https:" && parsed.username === "" && parsed.password === "";
  } catch {
    return false;
  }
}

/** What a server wants to ask the model, as quoted text by role. */
export function sampledMessages(params: JsonObject): { role: string; text: string }[] {
  const messages = Array.isArray(params.messages) ? params.messages : [];
  return messages.flatMap((message) => {
    if (!isObject(message)) return [];
    const parts = Array.isArray(message.content) ? message.content : [message.content ?? ""];
    const text = parts
      .map((part) =>
        isObject(part) ? textOf(part.text) || `[${textOf(part.type) || "part"}]` : textOf(part),
      )
      .join("\n");
    return [{ role: textOf(message.role) || "user", text }];
  });
}
