import { render } from "preact";
import { beforeAll, beforeEach, expect, it, vi } from "vitest";
import { openPage } from "./page";

let later: typeof import("../src/ui/later").later;
const View = () => <p>here</p>;
const root = document.createElement("div");

beforeAll(async () => {
  openPage();
  later = (await import("../src/ui/later")).later;
});

beforeEach(() => render(null, root));

it("shows what came between its first drawing and what follows it", async () => {
  const Later = later(async () => View);
  render(<Later />, root);
  Later.loadAhead();
  await Promise.resolve();
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
