import { render } from "preact";
import { act } from "preact/test-utils";
import { afterEach, beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import { at, openPage, PLACE } from "../../page";
import { inputRequest } from "../../rows";

let cards: typeof import("../../../src/chat/calls/input-card");
let hear: ((told: { server: string; name: string; ok: boolean }) => void) | null = null;
const open = vi.fn<(address: string) => boolean>();

vi.mock("../../../src/pages/sign-in", () => ({
  openSignIn: (address: string) => open(address),
  onSignedIn: (heard: typeof hear) => {
    hear = heard;
    return () => {
      hear = null;
    };
  },
}));

beforeAll(async () => {
  openPage({ body: `${PLACE}<textarea id="composer-text"></textarea>` });
  Element.prototype.scrollIntoView = () => {};
  // Tests of other files may have loaded the card with the real window.
  vi.resetModules();
  cards = await import("../../../src/chat/calls/input-card");
});

const draw = (node: Parameters<typeof render>[0]): void => {
  act(() => render(node, at()));
};
beforeEach(() => open.mockReset());
afterEach(() => draw(null));

const PATH = "/w/acme/servers/s1/sign-in/";
const row = inputRequest({
  kind: "sign_in",
  server: { id: "s1", name: "Mail" },
  message: "Mail wants you to sign in with your own account there.",
  schema: {},
  params: {
    account: "user",
    host: "mail.example.org",
    scopes: ["mail.read", "mail.write"],
    reason: "missing",
  },
  sign_in: { path: PATH, may_connect: true },
});
const link = (): HTMLAnchorElement => at().querySelector("a") as HTMLAnchorElement;
const press = (init: MouseEventInit = {}): boolean => {
  let wentOn = true;
  const click = new MouseEvent("click", { bubbles: true, cancelable: true, ...init });
  act(() => {
    wentOn = link().dispatchEvent(click);
  });
  return wentOn;
};

describe("a sign-in that a call waits for", () => {
  it("names the server, its host, the account and what it asks for", () => {
    draw(<cards.InputCard request={row} />);
    const text = at().textContent ?? "";
    expect(at().querySelector("h3")?.textContent).toBe("Sign in to Mail");
    for (const part of ["mail.example.org", "yours", "mail.read", "mail.write", "find_orders"]) {
      expect(text).toContain(part);
    }
    expect(link().getAttribute("href")).toBe(PATH);
  });

  it("opens its window at once, says that it waits, and can open it again", () => {
    open.mockReturnValue(true);
    draw(<cards.InputCard request={row} />);
    expect(press()).toBe(false);
    expect(open).toHaveBeenCalledExactlyOnceWith(PATH);
    expect(at().textContent).toContain("Waiting for you to finish signing in…");
    expect(link().textContent).toContain("Open it again");
  });

  it("leaves it to the browser to open a tab where a window is not allowed, or a key asks for one", () => {
    open.mockReturnValue(false);
    draw(<cards.InputCard request={row} />);
    expect(press()).toBe(true);
    expect(link().target).toBe("_blank");
    expect(press({ ctrlKey: true })).toBe(true);
    expect(open).toHaveBeenCalledTimes(1);
  });

  it("says that the sign-in failed, of this server alone", () => {
    open.mockReturnValue(true);
    draw(<cards.InputCard request={row} />);
    press();
    act(() => hear?.({ server: "other", name: "Other", ok: false }));
    expect(at().textContent).not.toContain("The sign-in failed");
    act(() => hear?.({ server: "s1", name: "Mail", ok: false }));
    expect(at().textContent).toContain("The sign-in failed");
    expect(link().textContent).toContain("Try again");
  });

  it("leaves the workspace's account to an administrator", () => {
    const shared = { ...row, params: { ...row.params, account: "workspace" } };
    draw(<cards.InputCard request={{ ...shared, sign_in: { path: PATH, may_connect: false } }} />);
    expect(at().querySelectorAll("a")).toHaveLength(0);
    expect(at().textContent).toContain("An administrator must connect it");
    expect(at().querySelector("h3")?.textContent).toBe("Mail is not connected");
  });

  it("hands the focus on when it is settled elsewhere", () => {
    draw(<cards.InputCard request={row} />);
    link().focus();
    draw(null);
    expect(document.activeElement?.id).toBe("composer-text");
  });

  it("stays readable once it is settled", () => {
    const words: Record<string, string> = {
      accepted: "You signed in",
      declined: "You chose not to sign in",
      expired: "Nobody signed in in time",
      cancelled: "No longer needed",
    };
    for (const [status, word] of Object.entries(words)) {
      draw(<cards.AnsweredInput request={{ ...row, status: status as "accepted", sign_in: null }} />);
      expect(at().textContent).toContain(word);
    }
  });
});
