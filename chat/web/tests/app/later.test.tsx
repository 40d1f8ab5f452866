import { render } from "preact";
import { beforeAll, beforeEach, expect, it, vi } from "vitest";
import { openPage } from "../page";

let later: typeof import("../../src/app/later").later;
const View = () => <p>here</p>;
const root = document.createElement("div");

beforeAll(async () => {
  openPage();
  later = (await import("../../src/app/later")).later;
});

beforeEach(() => render(null, root));

it("shows what came between its first drawing and what follows it", async () => {
  const Later = later(async () => View);
  render(<Later />, root);
  Later.loadAhead();
  await Promise.resolve();
  await vi.waitFor(() => expect(root.textContent).toBe("here"));
});

it("REL-3144: shows something else in its place until it has come", async () => {
  const Later = later(async () => View, { Meanwhile: () => <p>on its way</p> });
  render(<Later />, root);
  expect(root.textContent).toBe("on its way");
  await vi.waitFor(() => expect(root.textContent).toBe("here"));
});

it("shows at once what was fetched ahead", async () => {
  const Later = later(async () => View);
  Later.loadAhead();
  await vi.waitFor(() => {
    render(null, root);
    render(<Later />, root);
    expect(root.textContent).toBe("here");
  });
});

it("fetches again what did not come", async () => {
  const load = vi.fn(async () => View);
  load.mockRejectedValueOnce(new Error("away"));
  const Later = later(load);
  Later.loadAhead();
  await vi.waitFor(() => expect(load).toHaveBeenCalledOnce());
  render(null, root);
  render(<Later />, root);
  await vi.waitFor(() => expect(root.textContent).toBe("here"));
});

it("REL-1358: is not asked for without a connection, for browsers remember that, and comes once there is one", async () => {
  const online = vi.spyOn(navigator, "onLine", "get").mockReturnValue(false);
  const load = vi.fn(async () => View);
  const Later = later(load);
  Later.loadAhead();
  render(<Later />, root);
  await new Promise((resolve) => setTimeout(resolve, 20));
  expect([load.mock.calls.length, root.textContent]).toEqual([0, ""]);
  online.mockReturnValue(true);
  dispatchEvent(new Event("online"));
  await vi.waitFor(() => expect(root.textContent).toBe("here"));
  online.mockRestore();
});

it("REL-575: comes without a connection where the browser keeps it", async () => {
  const online = vi.spyOn(navigator, "onLine", "get").mockReturnValue(false);
  const Later = later(async () => View, { isKept: true });
  render(<Later />, root);
  await vi.waitFor(() => expect(root.textContent).toBe("here"));
  online.mockRestore();
});
