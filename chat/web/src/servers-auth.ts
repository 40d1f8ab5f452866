/** Of the fields for credentials, those that the chosen kind of authentication takes, under the names it has for them. */

const CREDENTIALS: Record<string, { name?: string; secret?: string }> = {
  bearer: { secret: "Token" },
  api_key: { name: "Header", secret: "Key" },
  basic: { name: "User name", secret: "Password" },
  oauth: { name: "Client ID", secret: "Client secret" },
  oauth_client: { name: "Client ID", secret: "Client secret" },
};

function fieldOf(form: HTMLFormElement, name: string): HTMLElement | null {
  const input = form.querySelector<HTMLElement>(`[name$="${name}"]`);
  return input?.closest<HTMLElement>(".field") ?? null;
}

function show(field: HTMLElement | null, isShown: boolean, label?: string): void {
  if (!field) return;
  field.hidden = !isShown;
  const words = field.querySelector("label")?.firstChild;
  if (label && words) words.textContent = `${label} `;
}

function fit(form: HTMLFormElement, kind: string): void {
  const { name, secret } = CREDENTIALS[kind] ?? {};
  show(fieldOf(form, "auth_name"), name !== undefined, name);
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
    fit(form, select.value);
    select.addEventListener("change", () => fit(form, select.value));
  }
}
