import { useState } from "preact/hooks";
import { boot } from "../app";

export const hasIcon = (id: string): boolean => id in boot.server_icons;

/** The icon that a server gave of itself, from our own origin; the first letter of its name where there is none. */
export function ServerTile({ id, name }: { id: string; name: string }) {
  const [isBroken, setBroken] = useState(false);
  const source = boot.server_icons[id];
  return (
    <span class="server-tile" aria-hidden="true">
      {source && !isBroken ? (
        <img src={source} alt="" loading="lazy" onError={() => setBroken(true)} />
      ) : (
        name.slice(0, 1)
      )}
    </span>
  );
}
