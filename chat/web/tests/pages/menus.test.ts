import { expect, it, vi } from "vitest";
import "../../src/pages/menus";

it("leaves alone what a script or an extension sends to the document itself", () => {
  const failed = vi.fn((event: ErrorEvent) => event.preventDefault());
  addEventListener("error", failed);
  document.dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowDown" }));
  document.dispatchEvent(new MouseEvent("click"));
  removeEventListener("error", failed);
  expect(failed).not.toHaveBeenCalled();
});
