import { render } from "preact";
import { act } from "preact/test-utils";
import { beforeAll, expect, it, vi } from "vitest";
import { openPage, PLACE } from "../page";

beforeAll(() => {
  openPage({ server_icons: {}, urls: { server_icons: "/icons/" }, body: PLACE });
  vi.resetModules();
});

it("REL-751: a letter gives way to the icon of a server that came while the page was open", async () => {
  const { ServerTile, serverIcons } = await import("../../src/app/server-tile");
  const at = document.getElementById("at") as HTMLElement;
  act(() => render(<ServerTile id="s1" name="Mail" />, at));
  expect(at.textContent).toBe("M");
  act(() => {
    serverIcons.value = { s1: "/icons/s1?v=1" };
  });
  expect(at.querySelector("img")?.getAttribute("src")).toBe("/icons/s1?v=1");
});
