import { render } from "preact";
import { act } from "preact/test-utils";
import { afterEach, beforeAll, beforeEach, expect, it, vi } from "vitest";
import { at, openPage, PLACE } from "../../page";
import { approvalOf, toolCall } from "../../rows";

let cards: typeof import("../../../src/chat/calls/approval-card");

beforeAll(async () => {
  openPage({ body: PLACE });
  Element.prototype.scrollIntoView = () => {};
  cards = await import("../../../src/chat/calls/approval-card");
  const { boot } = await import("../../../src/app/boot");
  Object.assign(boot, { remembers_permissions: true });
  Object.assign(boot.urls, { permissions: "/p/" });
});
beforeEach(() => {
  HTMLElement.prototype.hidePopover = () => {};
});
afterEach(() => {
  act(() => render(null, at()));
  vi.restoreAllMocks();
});

const approval = approvalOf();
const call = toolCall({ status: "waiting_for_approval", approval });
const named = (name: string) =>
  [...at().querySelectorAll("button")].find((one) => one.textContent?.trim() === name);

const draw = (): void => {
  act(() => render(<cards.ApprovalCard call={call} />, at()));
};

/** Menus draw their entries once they are open. */
function openMenu(): void {
  const menu = at().querySelector("[popover]");
  act(() => {
    menu?.dispatchEvent(Object.assign(new Event("toggle"), { newState: "open" }));
  });
}

it("SEC-554: has a tool ask each time from the card, and leaves this call to be decided", async () => {
  const sent = vi.spyOn(globalThis, "fetch").mockResolvedValue(Response.json({}, { status: 201 }));
  draw();
  openMenu();
  await act(async () => named("Ask me each time")?.click());
  await vi.waitFor(() => expect(at().querySelector("[role=status]")).not.toBeNull());
  // Others may ask for something meanwhile.
  const asked = sent.mock.calls.filter(([url]) => String(url).includes("tool-permissions/"));
  expect(asked.map(([, init]) => JSON.parse(String(init?.body)))).toEqual([{ tool_id: call.tool.id }]);
  expect(at().querySelector("[role=status] a")?.getAttribute("href")).toBe("/p/");
  expect(named("Allow once")).toBeDefined();
  expect(named("Always")).toBeUndefined();
});

const FOCUSED = [
  ["[role=group]", "composer-text"],
  ["textarea", ""],
] as const;

it.each(FOCUSED)("REL-1726: decided elsewhere, hands the focus of %s on", async (focused, id) => {
  const { forgetKept } = await import("../../../src/ui/kept");
  draw();
  if (focused === "textarea") act(() => named("Refuse…")?.click());
  at().querySelector<HTMLElement>(focused)?.focus();
  const field = document.body.appendChild(document.createElement("textarea"));
  field.id = "composer-text";
  act(() => render(null, at()));
  expect(document.activeElement?.id).toBe(id);
  field.remove();
  forgetKept(`refusal.${call.id}`);
});

it("REL-1725: says where a permission for good can be revoked", async () => {
  const { socket } = await import("../../../src/app/connection");
  vi.spyOn(socket, "ask").mockResolvedValue({} as never);
  const { toasts } = await import("../../../src/app/toasts");
  for (const [name, count] of [
    ["Allow once", 0],
    ["Always for this tool", 1],
  ] as const) {
    draw();
    openMenu();
    await act(async () => named(name)?.click());
    const told = toasts.value.filter(({ text }) => text.startsWith(`“${call.tool.title}”`));
    expect(told.map(({ action }) => action?.label)).toEqual(Array(count).fill("Tool permissions"));
    act(() => render(null, at()));
  }
});

it("SEC-554: says nothing of it where it did not work", async () => {
  vi.spyOn(globalThis, "fetch").mockResolvedValue(Response.json({ detail: "no" }, { status: 403 }));
  draw();
  openMenu();
  await act(async () => named("Ask me each time")?.click());
  await vi.waitFor(() => expect(fetch).toHaveBeenCalled());
  expect(at().querySelector("[role=status]")).toBeNull();
  expect(named("Always")).toBeDefined();
});

it("REL-1902: offers no decision to whoever was shut out of the workspace, until they may enter again", async () => {
  const { socketStatus } = await import("../../../src/app/connection");
  draw();
  act(() => {
    socketStatus.value = "workspace_suspended";
  });
  expect(at().querySelectorAll(".approval button.btn")).toHaveLength(0);
  expect(at().textContent).toContain("You can't decide about this now");
  act(() => {
    socketStatus.value = "open";
  });
  expect(named("Allow once")?.disabled).toBe(false);
});

it("REL-2077: who decides by keys goes on to the next call that waits, and decides nothing there by the same key", async () => {
  const { socket } = await import("../../../src/app/connection");
  const asked = vi.spyOn(socket, "ask").mockResolvedValue({} as never);
  const pressed = (event: string) => document.dispatchEvent(new Event(event));
  const two = [call, toolCall({ ...call, id: "c2" })];
  const drawBoth = () =>
    act(() =>
      render(
        <div class="chat-column">
          {two.map((one) => (
            <cards.ApprovalCard key={one.id} call={one} />
          ))}
        </div>,
        at(),
      ),
    );
  const field = document.body.appendChild(document.createElement("textarea"));
  field.id = "composer-text";
  drawBoth();
  const [first, second] = at().querySelectorAll<HTMLElement>("[role=group]");
  pressed("keydown");
  await act(async () => named("Allow once")?.click());
  expect(document.activeElement).toBe(second);
  second?.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter", bubbles: true }));
  expect(asked).toHaveBeenCalledTimes(1);
  act(() => render(null, at()));
  drawBoth();
  pressed("pointerdown");
  await act(async () => named("Allow once")?.click());
  expect(document.activeElement).toBe(field);
  expect(first).toBeDefined();
  field.remove();
});

it("REL-3147: of cards that come in any order the first one has the focus, unless somebody has begun elsewhere", () => {
  const calls = ["one", "two", "three"].map((id) => ({ ...call, id }));
  const show = (from: number) =>
    act(() =>
      render(
        calls.slice(from).map((one) => <cards.ApprovalCard key={one.id} call={one} />),
        at(),
      ),
    );
  const place = () => [...at().querySelectorAll(".approval")].indexOf(document.activeElement as Element);
  show(2);
  show(1);
  expect(place()).toBe(0);
  const later = performance.now() + 1_000;
  vi.spyOn(performance, "now").mockReturnValue(later);
  show(0);
  expect(place()).toBe(1);
});
