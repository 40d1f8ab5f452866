/** The icons that servers gave of themselves: known from the page, and asked for again when servers change. */
import { signal } from "@preact/signals";
import { useState } from "preact/hooks";
import { readAgain } from "../net/reading-again";
import { boot } from "./boot";
import { hearOfChanges, hearOfReturn } from "./connection";

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

export const hasIcon = (id: string): boolean => id in serverIcons.value;

/** The icon that a server gave of itself, from our own origin; the first letter of its name where there is none. */
export function ServerTile({ id, name }: { id: string; name: string }) {
  const [broken, setBroken] = useState("");
  const source = serverIcons.value[id];
  return (
    <span class="server-tile" aria-hidden="true">
      {source && source !== broken ? (
        <img src={source} alt="" loading="lazy" onError={() => setBroken(source)} />
      ) : (
        name.slice(0, 1)
      )}
    </span>
  );
}
