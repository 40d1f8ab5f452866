import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { startPasskeys } from "../../src/pages/passkeys";

const OPTIONS = { request_options: { publicKey: { challenge: "YQ", rpId: "localhost" } } };

class Device {
  static parseRequestOptionsFromJSON = (options: unknown) => options;
  static parseCreationOptionsFromJSON = (options: unknown) => options;
  toJSON() {
    return { id: "the-passkey" };
  }
}

let form: HTMLFormElement;
let notices: string[];

function show(kind: string): void {
  const options = kind === "create" ? OPTIONS.request_options : OPTIONS;
  document.body.innerHTML = `<form data-passkey="${kind}" action="/accounts/passkey/" hidden>
    <input type="hidden" name="credential" value="null"><button>Go</button>
    <script id="passkey-options" type="application/json">${JSON.stringify(options)}</script></form>`;
  form = document.querySelector("form") as HTMLFormElement;
  form.submit = vi.fn();
  notices = [];
  startPasskeys((text) => notices.push(text));
}

function answer(what: () => Promise<unknown>): void {
  Object.defineProperty(navigator, "credentials", { value: { create: what, get: what }, configurable: true });
}

const credential = (): string => (form.elements.namedItem("credential") as HTMLInputElement).value;

async function press(): Promise<void> {
  form.querySelector("button")?.click();
  await new Promise((resolve) => setTimeout(resolve));
}

beforeEach(() => vi.stubGlobal("PublicKeyCredential", Device));
afterEach(() => vi.unstubAllGlobals());

test("what the device answers is sent", async () => {
  show("step");
  answer(async () => new Device());
  expect(form.hidden).toBe(false);
  await press();
  expect(JSON.parse(credential())).toEqual({ id: "the-passkey" });
  expect(form.submit).toHaveBeenCalledOnce();
});

test("somebody who has not said who they are is asked what the server says just then", async () => {
  const fetched = vi.fn(async () => new Response(JSON.stringify(OPTIONS)));
  vi.stubGlobal("fetch", fetched);
  show("sign-in");
  answer(async () => new Device());
  await press();
  await vi.waitFor(() => expect(form.submit).toHaveBeenCalledOnce());
  expect(fetched).toHaveBeenCalledOnce();
});

test("who changes their mind reads nothing, and a fault is said in words", async () => {
  show("step");
  answer(() => Promise.reject(new DOMException("no", "NotAllowedError")));
  await press();
  expect(notices).toEqual([]);
  answer(() => Promise.reject(new DOMException("no", "SecurityError")));
  await press();
  expect(notices[0]).toContain("did not work");
  expect(form.submit).not.toHaveBeenCalled();
});

test("a device that has one already says so", async () => {
  show("create");
  answer(() => Promise.reject(new DOMException("again", "InvalidStateError")));
  await press();
  expect(notices[0]).toContain("already");
});

test("a browser without passkeys is offered none, and says so where one is added", async () => {
  vi.stubGlobal("PublicKeyCredential", undefined);
  show("step");
  expect(form.hidden).toBe(true);
  show("create");
  await press();
  expect(notices[0]).toContain("no passkeys");
});
