import { render } from "preact";
import { act } from "preact/test-utils";
import { beforeAll, expect, it, vi } from "vitest";

beforeAll(() => {
  const boot = {
    user: { id: "u", email: "a@b.c", name: "A" },
    workspace: { id: "w", slug: "w", name: "W", role: "member", is_auditor: false },
    workspaces: [],
    conversation_id: null,
    urls: { api: "/api/", socket: "/ws/", servers: "/s/", server_icons: "/icons/" },
    server_icons: {},
    csrf_token: "t",
  };
  document.body.innerHTML = `<script type="application/json" id="boot">${JSON.stringify(boot)}</script><div id="at"></div>`;
  vi.resetModules();
});

it("REL-751: a letter gives way to the icon of a server that came while the page was open", async () => {
  const { serverIcons } = await import("../src/server-icons");
  const { ServerTile } = await import("../src/ui/server-tile");
  const at = document.getElementById("at") as HTMLElement;
  act(() => render(<ServerTile id="s1" name="Mail" />, at));
  expect(at.textContent).toBe("M");
  act(() => {
    serverIcons.value = { s1: "/icons/s1?v=1" };
  });
  expect(at.querySelector("img")?.getAttribute("src")).toBe("/icons/s1?v=1");
});
