/** The icons that servers gave of themselves: known from the page, and asked for again when servers change. */
import { signal } from "@preact/signals";
import { boot } from "../app/boot";
import { hearOfChanges, hearOfReturn } from "../app/connection";
import { readAgain } from "../net/reading-again";

/** Addresses of our own origin, by server. */
export const serverIcons = signal<Readonly<Record<string, string>>>(boot.server_icons);

async function load(): Promise<void> {
  try {
    const answer = await fetch(boot.urls.server_icons, { credentials: "same-origin" });
    if (answer.ok) serverIcons.value = (await answer.json()) as Record<string, string>;
  } catch {
    // The next change of a server asks again.
  }
}

export function followServerIcons(): void {
  hearOfChanges((kind) => {
    if (kind === "server.changed") readAgain("icons", load);
  });
  hearOfReturn(() => void load());
}
