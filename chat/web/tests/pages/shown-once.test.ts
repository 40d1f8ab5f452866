import { expect, it, vi } from "vitest";
import { startShownOnce } from "../../src/pages/shown-once";

it("REL-2694: only a page that shows a secret has its form not sent again", () => {
  const replaced = vi.spyOn(history, "replaceState");
  document.body.innerHTML = "<p>Nothing</p>";
  startShownOnce(document);
  expect(replaced).not.toHaveBeenCalled();
  document.body.innerHTML = "<div data-shown-once></div>";
  startShownOnce(document);
  expect(replaced).toHaveBeenCalledOnce();
});
