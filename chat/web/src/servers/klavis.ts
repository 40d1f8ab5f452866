/** Pages on the hosted MCP provider: sign-ins in a window of their own, and cards that follow what happens elsewhere. */

import { readAgain } from "../net/reading-again";
import { hearOfWorkspace } from "../net/workspace";
import { closestTo } from "../ui/closest";

interface Htmx {
  ajax(verb: string, path: string, context: { target: string; swap: string }): Promise<void>;
}

async function redraw(address: string, id: string): Promise<void> {
  const card = document.getElementById(`klavis-${id}`);
  // Somebody who is typing a key is not interrupted.
  if (!card || card.querySelector("input[type=password]:focus")) return;
  const url = `${address}${encodeURIComponent(id)}/card/`;
  const answer = await fetch(url, { headers: { "HX-Request": "true" } });
  if (answer.status === 404) card.remove();
  else if (answer.ok) {
    const { htmx } = globalThis as { htmx?: Htmx };
    await htmx?.ajax("GET", url, { target: `#klavis-${id}`, swap: "outerMorph" });
  }
}

function later(address: string, id: string, isOwn = false): void {
  readAgain(`klavis-${id}`, () => void redraw(address, id).catch(() => undefined), { isOwn });
}

export function startKlavis(): void {
  document.addEventListener("click", (event) => {
    const link = closestTo<HTMLAnchorElement>(event, "a[data-hosted-sign-in]");
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
    if (!/^https?:$/.test(link.protocol)) return;
    const left = Math.max(0, Math.round(screen.width / 2 - 280));
    window.open(link.href, "_blank", `popup,noopener,noreferrer,width=560,height=720,left=${left},top=80`);
    event.preventDefault();
  });
  const page = document.getElementById("klavis");
  const address = page?.dataset.klavisUrl;
  if (!address) return;
  hearOfWorkspace({
    onChange: (kind, id) => {
      if (kind === "klavis.changed") later(address, id);
    },
    onReturn: () => {
      for (const card of document.querySelectorAll<HTMLElement>("[data-klavis]"))
        later(address, card.dataset.klavis ?? "", true);
    },
  });
}
