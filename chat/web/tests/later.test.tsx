import { render } from "preact";
import { beforeAll, beforeEach, expect, it, vi } from "vitest";

let later: typeof import("../src/ui/later").later;
const View = () => <p>here</p>;
const root = document.createElement("div");

beforeAll(async () => {
  const boot = {
    user: { id: "u", email: "a@b.c", name: "A" },
    workspace: { id: "w", slug: "w", name: "W", role: "member", is_auditor: false },
    workspaces: [],
    conversation_id: null,
    urls: { api: "/api/", socket: "/ws/", servers: "/s/" },
    csrf_token: "t",
  };
  document.body.innerHTML = `<script type="application/json" id="boot">${JSON.stringify(boot)}</script>`;
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
