import { expect, test, vi } from "vitest";
import { startEscapingBack } from "../../src/pages/escaping-back";

test("REL-1191: Escape leads from a page that asks back to its list, and other keys do nothing", () => {
  document.body.innerHTML =
    '<form data-back="/admin/a/b/?q=x"><input name="reason"><a href="/" autofocus>Cancel</a></form>';
  const leave = vi.fn();
  startEscapingBack(leave);
  expect(document.activeElement?.textContent).toBe("Cancel");
  const input = document.querySelector("input") as HTMLInputElement;
  for (const key of ["Enter", "a", "Escape"]) {
    input.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
  }
  expect(leave.mock.calls).toEqual([["/admin/a/b/?q=x"]]);
});

test("REL-1191: a page that asks nothing takes no Escape", () => {
  document.body.innerHTML = "<form></form>";
  const leave = vi.fn();
  startEscapingBack(leave);
  document.body.dispatchEvent(new KeyboardEvent("keydown", { key: "Escape", bubbles: true }));
  expect(leave).not.toHaveBeenCalled();
});
