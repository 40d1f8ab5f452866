import { beforeEach, expect, test, vi } from "vitest";
import { onSignedIn, openSignIn, type SignedIn, startSignIn } from "../../src/pages/sign-in";

const went = vi.fn();

beforeEach(() => {
  document.body.innerHTML = "";
  went.mockReset();
});

test("the way on is taken to web addresses alone", () => {
  for (const href of ["javascript:alert(1)", "data:text/html,x", "intent://x", "file:///etc/passwd"]) {
    document.body.innerHTML = `<a data-go href="${href}">on</a>`;
    startSignIn(went);
  }
  expect(went).not.toHaveBeenCalled();
  document.body.innerHTML = '<a data-go href="https://issuer.example.org/authorize?state=1">on</a>';
  startSignIn(went);
  expect(went).toHaveBeenCalledWith("https://issuer.example.org/authorize?state=1");
});

test("only our own pages are opened, and asked to begin by themselves", () => {
  const open = vi.spyOn(window, "open").mockReturnValue(null);
  expect(openSignIn("https://elsewhere.example.org/w/x/servers/1/sign-in/")).toBe(false);
  expect(open).not.toHaveBeenCalled();
  expect(openSignIn("/w/x/servers/1/sign-in/")).toBe(false);
  expect(String(open.mock.calls[0]?.[0])).toMatch(/\/w\/x\/servers\/1\/sign-in\/\?now=1$/);
});

test("whoever listens hears how it ended", async () => {
  vi.spyOn(window, "close").mockImplementation(() => undefined);
  const heard = new Promise<SignedIn>((resolve) => {
    const stop = onSignedIn((told) => {
      stop();
      resolve(told);
    });
  });
  document.body.innerHTML = '<div data-signed-in="s1" data-name="Mail" data-ok="yes"></div>';
  startSignIn();
  expect(await heard).toEqual({ server: "s1", name: "Mail", ok: true });
});
