/** Signing in to a server, in a window of its own: opening it, sending it on, and hearing how it ended. */
import { closestTo } from "../ui/closest";

export interface SignedIn {
  server: string;
  name: string;
  ok: boolean;
}

const CHANNEL = "trellis-sign-in";

/** Open a sign-in page of ours in a small window; false if the browser did not allow that. */
export function openSignIn(address: string): boolean {
  const url = new URL(address, location.href);
  if (url.origin !== location.origin) return false;
  url.searchParams.set("now", "1");
  const left = Math.max(0, Math.round(screen.width / 2 - 280));
  const features = `popup,width=560,height=720,left=${left},top=80`;
  const popup = window.open(url.href, `sign-in ${url.pathname}`, features);
  popup?.focus();
  return popup !== null;
}

/** Hear of every sign-in that ends in this browser, in whatever window. */
export function onSignedIn(hear: (outcome: SignedIn) => void): () => void {
  const channel = new BroadcastChannel(CHANNEL);
  channel.onmessage = (event: MessageEvent<Partial<SignedIn>>) => {
    const { server, name, ok } = event.data ?? {};
    if (typeof server === "string") hear({ server, name: String(name ?? ""), ok: ok === true });
  };
  return () => channel.close();
}

/** What the sign-in pages do by themselves. */
export function startSignIn(go: (address: string) => void = (address) => location.assign(address)): void {
  document.querySelector<HTMLFormElement>("form[data-begins]")?.requestSubmit();
  const onward = document.querySelector<HTMLAnchorElement>("a[data-go]");
  if (onward && /^https?:$/.test(onward.protocol)) go(onward.href);
  const end = document.querySelector<HTMLElement>("[data-signed-in]");
  if (end) {
    const outcome: SignedIn = {
      server: end.dataset.signedIn ?? "",
      name: end.dataset.name ?? "",
      ok: end.dataset.ok === "yes",
    };
    const channel = new BroadcastChannel(CHANNEL);
    channel.postMessage(outcome);
    channel.close();
    // A failure stays to be read. A window that was at another site may be one that no script closes.
    if (outcome.ok) window.close();
  }
  if (document.querySelector("[data-closes]")) window.close();
  document.addEventListener("click", (event) => {
    const link = closestTo<HTMLAnchorElement>(event, "a[data-sign-in]");
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
    if (openSignIn(link.href)) event.preventDefault();
  });
}
