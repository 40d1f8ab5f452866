import { expect, it, vi } from "vitest";
import "../../src/pages/menus";
import { startSignIn } from "../../src/pages/sign-in";

startSignIn();

it("leaves alone what a script or an extension sends to the document itself", () => {
  const failed = vi.fn((event: ErrorEvent) => event.preventDefault());
  addEventListener("error", failed);
  document.dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowDown" }));
  document.dispatchEvent(new MouseEvent("click"));
  removeEventListener("error", failed);
  expect(failed.mock.calls.map(([event]) => (event.error as Error).stack)).toEqual([]);
});
