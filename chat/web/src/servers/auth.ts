/** Of the fields for credentials, those that the chosen kind of authentication takes, under the names it has for them. */
import t from "../texts/pages";

const CREDENTIALS: Record<string, { name?: string; help?: string; secret?: string }> = {
  bearer: { secret: t.token },
  api_key: { name: t.header, help: t.headerHelp, secret: t.key },
  basic: { name: t.userName, secret: t.password },
  oauth: {
    name: t.clientId,
    help: t.clientIdHelp,
    secret: t.clientSecret,
  },
  oauth_client: { name: t.clientId, secret: t.clientSecret },
};

function fieldOf(form: HTMLFormElement, name: string): HTMLElement | null {
  const input = form.querySelector<HTMLElement>(`[name$="${name}"]`);
  return input?.closest<HTMLElement>(".field") ?? null;
}

function show(field: HTMLElement | null, isShown: boolean, label?: string, help?: string): void {
  if (!field) return;
  field.hidden = !isShown;
  const helped = field.querySelector<HTMLElement>(".help");
  if (help !== undefined && helped) helped.textContent = help;
  const words = field.querySelector("label")?.firstChild;
  if (label && words) words.textContent = `${label} `;
}

function fit(form: HTMLFormElement, kind: string): void {
  const { name, help, secret } = CREDENTIALS[kind] ?? {};
  show(fieldOf(form, "auth_name"), name !== undefined, name, help ?? "");
  show(fieldOf(form, "auth_secret"), secret !== undefined, secret);
  show(fieldOf(form, "account_use"), kind === "oauth");
  show(fieldOf(form, "oauth_scope"), kind === "oauth" || kind === "oauth_client");
  for (const field of form.querySelectorAll<HTMLElement>("[data-for-auth]")) {
    field.hidden = field.dataset.forAuth !== kind;
  }
}

export function startAuthFields(): void {
  for (const select of document.querySelectorAll<HTMLSelectElement>('select[name$="auth_type"]')) {
    const form = select.form;
    if (!form) continue;
    // What the issuer has to know of us belongs to the client.
    fieldOf(form, "auth_secret")?.after(...form.querySelectorAll("[data-for-auth]"));
    fit(form, select.value);
    select.addEventListener("change", () => fit(form, select.value));
  }
}
