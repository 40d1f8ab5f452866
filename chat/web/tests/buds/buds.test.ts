/** The form of a new bud. */
import { afterEach, expect, it, vi } from "vitest";

afterEach(() => vi.resetModules());

it("REL-1537: a new bud has a short name from its name, also where that was typed before the page's script came", async () => {
  document.body.innerHTML = `<form id="bud-form"><input id="id_name" value="My Trial"><input id="id_slug"></form>`;
  await import("../../src/buds");
  expect((document.getElementById("id_slug") as HTMLInputElement).value).toBe("my-trial");
});
