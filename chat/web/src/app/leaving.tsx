/** Links of models and tools show where they lead before they open. */

import { signal } from "@preact/signals";
import { useState } from "preact/hooks";
import { personal } from "../pages/forgetting";
import { filled } from "../texts/language";
import t from "../texts/reading";
import { CopyButton } from "../ui/copy";
import { Dialog } from "../ui/dialog";
import { boot } from "./boot";

const KEY = `trellis.hosts.${boot.user.id}`;
const MOST_HOSTS = 200;

interface Target {
  href: string;
  /** The host, or whom a mail would go to. */
  host: string;
  isMail: boolean;
  /** The words of the link look like the address of another site. */
  isDisguised: boolean;
}

/** Where a link leads, and whether its words say something else. Pure. */
export function targetOf(href: string, words: string): Target | null {
  let address: URL;
  try {
    address = new URL(href);
  } catch {
    return null;
  }
  const isMail = address.protocol === "mailto:";
  const host = isMail ? decodeURIComponent(address.pathname) : address.host;
  const named = /^(?:https?:\/\/)?(?:[^\s/@]+@)?((?:[\p{L}\p{N}-]+\.)+\p{L}{2,})(?=[:/?#]|$)/iu.exec(
    words.trim(),
  )?.[1];
  const bare = (name: string) => name.toLowerCase().replace(/^www\./, "");
  const isDisguised = !isMail && named !== undefined && bare(named) !== bare(address.hostname);
  return { href: address.href, host, isMail, isDisguised };
}

function trusted(): string[] {
  try {
    const hosts: unknown = JSON.parse(personal.getItem(KEY) ?? "[]");
    return Array.isArray(hosts) ? hosts.filter((host) => typeof host === "string") : [];
  } catch {
    return [];
  }
}

function trust(host: string): void {
  try {
    const others = trusted().filter((other) => other !== host);
    personal.setItem(KEY, JSON.stringify([...others, host].slice(-MOST_HOSTS)));
  } catch {
    // Without storage one is asked again.
  }
}

const leaving = signal<Target | null>(null);

function heard(event: MouseEvent): void {
  if (event.button > 1 || event.defaultPrevented || !(event.target instanceof Element)) return;
  const link = event.target.closest<HTMLAnchorElement>(".md a[href], a[data-foreign]");
  const target = link && targetOf(link.href, link.textContent ?? "");
  if (!target || (!target.isDisguised && trusted().includes(target.host))) return;
  event.preventDefault();
  leaving.value = target;
}

/** Hear of clicks on such links, with any button and key. */
export function askBeforeLeaving(): void {
  document.addEventListener("click", heard);
  document.addEventListener("auxclick", heard);
}

export function LeavingDialog() {
  const target = leaving.value;
  return target && <Question key={target.href} target={target} />;
}

function Question({ target }: { target: Target }) {
  const [isTrusted, setTrusted] = useState(false);
  const close = () => {
    leaving.value = null;
  };
  const { href, host, isMail, isDisguised } = target;
  return (
    <Dialog title={t.leaving} onClose={close}>
      <div class="grid gap-3 px-5 pt-3 pb-5 text-sm">
        <p>
          {isMail
            ? filled(t.writesTo, { address: <b class="break-all">{host}</b> })
            : filled(t.leadsTo, { host: <b class="break-all">{host}</b> })}
        </p>
        {isDisguised && (
          <p class="notice" data-tone="warn">
            {t.looksLike}
          </p>
        )}
        <code class="leaving-address">{href}</code>
        {!isMail && !isDisguised && (
          <label class="check">
            <input
              type="checkbox"
              checked={isTrusted}
              onChange={(event) => setTrusted(event.currentTarget.checked)}
            />
            {t.trustHost(host)}
          </label>
        )}
        <div class="dialog-foot flex flex-wrap items-center justify-end gap-2">
          <CopyButton text={() => href} label={t.copyAddress} />
          <a
            class="btn btn-sm btn-primary"
            href={href}
            target="_blank"
            rel="noopener noreferrer nofollow"
            onClick={() => {
              if (isTrusted) trust(host);
              close();
            }}
          >
            {t.openLink}
          </a>
        </div>
      </div>
    </Dialog>
  );
}
