import { useState } from "preact/hooks";
import { serverIcons } from "../servers/icons";

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
