import { expect, it, vi } from "vitest";

const heard: { onChange: (kind: string, id: string) => void }[] = [];
vi.mock("../../src/net/workspace", () => ({ hearOfWorkspace: (one: (typeof heard)[0]) => heard.push(one) }));
vi.mock("../../src/site", () => ({}));

it("REL-2562: a page of servers that nobody sees asks for nothing, and for what changed once it is seen", async () => {
  vi.useFakeTimers();
  const fetched = vi.fn(async () => new Response("", { status: 404 }));
  vi.stubGlobal("fetch", fetched);
  document.body.innerHTML = '<div id="servers" data-servers-url="/s/"><div id="server-1"></div></div>';
  await import("../../src/servers");
  const look = vi.spyOn(document, "visibilityState", "get").mockReturnValue("hidden");
  for (const kind of ["server.checked", "server.changed", "tools.changed"]) heard[0]?.onChange(kind, "1");
  await vi.advanceTimersByTimeAsync(1000);
  expect(fetched).not.toHaveBeenCalled();
  look.mockReturnValue("visible");
  document.dispatchEvent(new Event("visibilitychange"));
  await vi.advanceTimersByTimeAsync(1000);
  expect(fetched).toHaveBeenCalledExactlyOnceWith("/s/1/", expect.anything());
  expect(document.getElementById("server-1")).toBeNull();
});
