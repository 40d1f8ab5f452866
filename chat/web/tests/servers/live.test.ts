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

it("REL-3232: the answer to a test that comes while its server is read again stays to be read", async () => {
  vi.useFakeTimers();
  vi.spyOn(document, "visibilityState", "get").mockReturnValue("visible");
  const read = Promise.withResolvers<Response>();
  vi.stubGlobal("fetch", () => read.promise);
  document.getElementById("servers")?.insertAdjacentHTML("beforeend", '<div id="server-2"></div>');
  const card = document.getElementById("server-2");
  heard[0]?.onChange("server.checked", "2");
  await vi.advanceTimersByTimeAsync(1000);
  card?.insertAdjacentHTML("beforeend", "<p data-report>It answered.</p>");
  read.resolve(new Response("", { status: 404 }));
  await vi.advanceTimersByTimeAsync(1000);
  expect(card?.isConnected).toBe(true);
  await vi.advanceTimersByTimeAsync(15_000);
  expect(card?.isConnected).toBe(false);
});
