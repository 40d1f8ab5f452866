/** Passkeys: the forms whose answer a person's device gives. Source: https://www.w3.org/TR/webauthn-3/ */
import t from "../texts/pages";

type Notify = (text: string) => void;

/** Whether this browser has passkeys, and reads what the server sends of them. */
export function hasPasskeys(): boolean {
  return typeof PublicKeyCredential !== "undefined" && "parseRequestOptionsFromJSON" in PublicKeyCredential;
}

/** Have the device answer before such a form is sent. Without passkeys, what offers them says so or stays hidden. */
export function startPasskeys(notify: Notify): void {
  for (const form of document.querySelectorAll<HTMLFormElement>("form[data-passkey]")) {
    if (form.dataset.passkey !== "create") form.hidden = !hasPasskeys();
    form.addEventListener("submit", (event) => {
      const box = form.querySelector<HTMLInputElement>("input[name=credential]");
      if (!box) return;
      event.preventDefault();
      void answer(form, box, notify);
    });
  }
}

async function answer(form: HTMLFormElement, box: HTMLInputElement, notify: Notify): Promise<void> {
  if (!hasPasskeys()) return notify(t.noPasskeys);
  try {
    const credential = form.dataset.passkey === "create" ? await create(form) : await get(form);
    if (!(credential instanceof PublicKeyCredential)) return;
    box.value = JSON.stringify(credential.toJSON());
    form.submit();
  } catch (error) {
    if (error instanceof DOMException && error.name === "InvalidStateError") notify(t.passkeyThere);
    // Who closes the device's question has changed their mind, and knows.
    else if (!(error instanceof DOMException && error.name === "NotAllowedError")) notify(t.passkeyFailed);
  }
}

function create(form: HTMLFormElement): Promise<Credential | null> {
  const options = optionsIn(form) as { publicKey: PublicKeyCredentialCreationOptionsJSON };
  const publicKey = PublicKeyCredential.parseCreationOptionsFromJSON(options.publicKey);
  publicKey.authenticatorSelection = {
    ...publicKey.authenticatorSelection,
    residentKey: "required",
    requireResidentKey: true,
    userVerification: "required",
  };
  return navigator.credentials.create({ publicKey });
}

async function get(form: HTMLFormElement): Promise<Credential | null> {
  const options = (form.dataset.passkey === "sign-in" ? await fetched(form.action) : optionsIn(form)) as {
    publicKey: PublicKeyCredentialRequestOptionsJSON;
  };
  return navigator.credentials.get({
    publicKey: PublicKeyCredential.parseRequestOptionsFromJSON(options.publicKey),
  });
}

/** What the page says that the device is to be asked. */
function optionsIn(form: HTMLFormElement): unknown {
  return JSON.parse(form.querySelector("script[type='application/json']")?.textContent ?? "{}");
}

/** What it is to be asked by somebody who has not said who they are. */
async function fetched(address: string): Promise<unknown> {
  const headers = { accept: "application/json", "x-requested-with": "XMLHttpRequest" };
  const response = await fetch(address, { headers });
  if (!response.ok) throw new Error(response.statusText);
  return ((await response.json()) as { request_options: unknown }).request_options;
}
