/** The page around the app's parts, as the server writes it. */

/** Write it, before a part is imported: each reads it once. */
export function openPage({ urls = {}, body = "", ...more }: PageParts = {}): void {
  const boot = {
    user: { id: "u", email: "a@b.c", name: "A", picture: "" },
    workspace: { id: "w", slug: "w", name: "W", role: "member", is_auditor: false },
    workspaces: [],
    conversation_id: null,
    urls: { api: "/api/", socket: "/ws/", servers: "/s/", call_rules: "/s/call-rules/", ...urls },
    csrf_token: "t",
    ...more,
  };
  // The page of these tests knows no screen and has no top layer.
  globalThis.matchMedia ??= () =>
    ({ matches: false, addEventListener: () => {} }) as unknown as MediaQueryList;
  Element.prototype.scrollIntoView ??= () => {};
  HTMLDialogElement.prototype.showModal = () => {};
  HTMLDialogElement.prototype.close = () => {};
  document.body.innerHTML = `<script type="application/json" id="boot">${JSON.stringify(boot)}</script>${body}`;
}

interface PageParts {
  urls?: Record<string, string>;
  body?: string;
  [part: string]: unknown;
}

/** Where a test draws. */
export const PLACE = '<div id="at"></div>';

export const at = (): HTMLElement => document.getElementById("at") as HTMLElement;
