import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { EVERY_MS, isReading, RESTS_AFTER_MS, startLive } from "../../src/audit/live";

const page = `<button data-live hidden><span data-live-label></span></button>
  <div id="totals"><b>7</b></div>
  <div id="chart"><details><summary>Table</summary></details></div>
  <div id="entries"><button class="unfold" aria-expanded="false"></button><p>old</p></div>`;
let stop = () => {};
const get = (selector: string) => document.querySelector(selector) as HTMLElement;
const parts = `<div id="totals"><b>8</b></div>
  <div id="chart"><details><summary>Fresh table</summary></details></div>
  <div id="entries"><p>new</p></div>`;
const answer = async (_url: string, _given: RequestInit): Promise<Response> =>
  new Response(parts, { headers: { ETag: '"a"' } });
const ask = vi.fn(answer);
const placed = vi.fn();

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["setInterval", "clearInterval", "Date"] });
  vi.stubGlobal("fetch", ask);
  ask.mockClear();
  placed.mockClear();
  sessionStorage.clear();
  document.body.innerHTML = page;
  stop = startLive(get("[data-live]") as HTMLButtonElement, get("#entries"), placed);
});

afterEach(() => stop());

test("new rows come once it is switched on, and no more once it is off", async () => {
  const button = get("[data-live]");
  expect(button.hidden).toBe(false);
  vi.advanceTimersByTime(EVERY_MS);
  expect(ask).not.toHaveBeenCalled();
  button.click();
  await vi.waitFor(() => expect(get("#entries").textContent).toBe("new"));
  expect(button.getAttribute("aria-pressed")).toBe("true");
  button.click();
  // Waiting moves the clock on, too, so on a busy machine it may have asked more than once until here.
  const asked = ask.mock.calls.length;
  vi.advanceTimersByTime(EVERY_MS * 3);
  expect(ask).toHaveBeenCalledTimes(asked);
});

test("it stands still while a row is open", () => {
  get(".unfold").setAttribute("aria-expanded", "true");
  expect(isReading(get("#entries"))).toBe(true);
  get("[data-live]").click();
  vi.advanceTimersByTime(EVERY_MS * 2);
  expect(ask).not.toHaveBeenCalled();
  expect(get("[data-live]").textContent).toContain("paused");
});

test("it rests when nobody touches the page", async () => {
  get("[data-live]").click();
  await vi.waitFor(() => expect(get("#entries").textContent).toBe("new"));
  await vi.advanceTimersByTimeAsync(RESTS_AFTER_MS + EVERY_MS * 2);
  const asked = ask.mock.calls.length;
  await vi.advanceTimersByTimeAsync(EVERY_MS * 5);
  expect(ask.mock.calls.length).toBe(asked);
});

test("REL-790: the numbers and the chart follow with the rows", async () => {
  const table = get("#chart details") as HTMLDetailsElement;
  table.open = true;
  get("[data-live]").click();
  await vi.waitFor(() => expect(get("#totals").textContent).toBe("8"));
  expect(get("#chart").textContent).toContain("Fresh table");
  expect((get("#chart details") as HTMLDetailsElement).open).toBe(true);
  expect(placed.mock.calls.map(([part]) => part.id)).toEqual(["totals", "chart", "entries"]);
});

test("what the page has is not sent again", async () => {
  get("[data-live]").click();
  await vi.waitFor(() => expect(get("#entries").textContent).toBe("new"));
  placed.mockClear();
  ask.mockResolvedValueOnce(new Response(null, { status: 304 }));
  await vi.advanceTimersByTimeAsync(EVERY_MS);
  expect(ask.mock.lastCall?.[1].headers).toMatchObject({ "If-None-Match": '"a"' });
  expect(placed).not.toHaveBeenCalled();
  expect(get("[data-live]").dataset.state).toBe("on");
});

test("it works where the browser forbids storage", async () => {
  stop();
  const forbidden = () => {
    throw new DOMException("The operation is insecure.", "SecurityError");
  };
  vi.stubGlobal("sessionStorage", { getItem: forbidden, setItem: forbidden, clear: () => {} });
  try {
    document.body.innerHTML = page;
    stop = startLive(get("[data-live]") as HTMLButtonElement, get("#entries"), placed);
    get("[data-live]").click();
    await vi.waitFor(() => expect(get("#entries").textContent).toBe("new"));
  } finally {
    vi.unstubAllGlobals();
  }
});

test("REL-2785: it says why it ends for whoever may not see the log any more, and that it tries again after a failure", async () => {
  ask.mockRejectedValueOnce(new TypeError("Failed to fetch"));
  get("[data-live]").click();
  await vi.waitFor(() => expect(get("[data-live]").textContent).toContain("trying again"));
  const headers = { "Content-Type": "text/plain; charset=utf-8" };
  ask.mockResolvedValueOnce(new Response("Only auditors can do that.", { status: 403, headers }));
  await vi.advanceTimersByTimeAsync(EVERY_MS);
  await vi.waitFor(() => expect(get("[role=alert]").textContent).toBe("Only auditors can do that."));
  expect(get("[data-live]").getAttribute("aria-pressed")).toBe("false");
  expect(get("#entries").textContent).toContain("old");
  get("[data-live]").click();
  expect(get("[role=alert]")).toBeNull();
});
