/** The part of the reminders' page that this browser takes part in: whether it is notified while Trellis is closed. */
import t from "../texts/push";

/** Base64url, as Web Push writes all of its values. */
export function toBase64url(buffer: ArrayBuffer | null): string {
  const text = String.fromCharCode(...new Uint8Array(buffer ?? new ArrayBuffer(0)));
  return btoa(text).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

export function fromBase64url(text: string): Uint8Array<ArrayBuffer> {
  const plain = atob(text.replaceAll("-", "+").replaceAll("_", "/"));
  return Uint8Array.from(plain, (character) => character.charCodeAt(0));
}

const hasPush = (): boolean => "serviceWorker" in navigator && "PushManager" in window;

/** What the server knows this browser by; it keeps the address itself sealed. */
async function digestOf(endpoint: string): Promise<string> {
  const hash = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(endpoint));
  return [...new Uint8Array(hash)].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

async function current(): Promise<PushSubscription | null> {
  const registration = await navigator.serviceWorker.getRegistration("/");
  return (await registration?.pushManager.getSubscription()) ?? null;
}

/** Ask the browser for an address at its push service; one that belongs to another key of ours is given up. */
async function subscribe(key: string): Promise<PushSubscription> {
  const { pushManager } = await navigator.serviceWorker.ready;
  const known = await pushManager.getSubscription();
  if (known && toBase64url(known.options.applicationServerKey) === key) return known;
  await known?.unsubscribe();
  return pushManager.subscribe({ userVisibleOnly: true, applicationServerKey: fromBase64url(key) });
}

async function fill(form: HTMLFormElement, key: string): Promise<string> {
  if ((await Notification.requestPermission()) !== "granted") return t.blocked;
  try {
    const subscription = await subscribe(key);
    const values = {
      endpoint: subscription.endpoint,
      p256dh: toBase64url(subscription.getKey("p256dh")),
      auth: toBase64url(subscription.getKey("auth")),
    };
    for (const [name, value] of Object.entries(values)) {
      const field = form.elements.namedItem(name);
      if (field instanceof HTMLInputElement) field.value = value;
    }
    return "";
  } catch {
    return t.failed; // a browser without a push service, or one that cannot reach it
  }
}

function say(section: HTMLElement, text: string): void {
  const problem = section.querySelector<HTMLElement>("[data-push-problem]");
  if (!problem) return;
  problem.textContent = text;
  problem.hidden = text === "";
}

export async function startPush(): Promise<void> {
  const section = document.querySelector<HTMLElement>("[data-push]");
  const form = section?.querySelector<HTMLFormElement>("[data-push-add]");
  if (!section || !form) return;
  const key = section.dataset.key ?? "";
  if (!hasPush()) {
    say(section, isSecureContext ? t.unable : t.insecure);
    return;
  }
  if (Notification.permission === "denied") say(section, t.blocked);
  const known = await current();
  const row = known && section.querySelector(`[data-device="${await digestOf(known.endpoint)}"]`);
  const mark = row?.querySelector<HTMLElement>("[data-this]");
  if (mark && known && toBase64url(known.options.applicationServerKey) === key) {
    mark.hidden = false;
    return;
  }
  form.hidden = false;
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const button = form.querySelector("button");
    if (button) button.disabled = true;
    const problem = await fill(form, key);
    say(section, problem);
    if (button) button.disabled = false;
    if (!problem) form.submit();
  });
}
