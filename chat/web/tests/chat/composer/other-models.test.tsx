import { render } from "preact";
import { act } from "preact/test-utils";
import { beforeAll, describe, expect, it, vi } from "vitest";
import type { Model, Turn } from "../../../src/wire";
import { at, openPage, PLACE } from "../../page";

let actions: typeof import("../../../src/chat/messages/answer-actions");
let compare: typeof import("../../../src/chat/composer/compare-dialog");
let choice: typeof import("../../../src/chat/composer/choice");
let comparing: typeof import("../../../src/chat/composer/comparing").comparing;

beforeAll(async () => {
  openPage({ body: PLACE });
  HTMLDialogElement.prototype.showModal = () => {};
  vi.stubGlobal("fetch", async () => new Response("", { status: 500 }));
  vi.resetModules();
  actions = await import("../../../src/chat/messages/answer-actions");
  compare = await import("../../../src/chat/composer/compare-dialog");
  choice = await import("../../../src/chat/composer/choice");
  comparing = (await import("../../../src/chat/composer/comparing")).comparing;
});

const turn = { id: "1", model: "model-00" } as Turn;
const offer = (number: number): void => {
  choice.models.value = Array.from(
    { length: number },
    (_, i) =>
      ({ provider_id: "p", name: `model-${String(i).padStart(2, "0")}`, provider_name: "P" }) as Model,
  );
};
const draw = (node: Parameters<typeof render>[0]): void => act(() => render(node, at())) as unknown as void;
const buttons = (): string[] => [...at().querySelectorAll("button")].map((one) => one.textContent ?? "");
const named = (text: string): HTMLButtonElement =>
  [...at().querySelectorAll("button")].find((one) => one.textContent?.includes(text)) as HTMLButtonElement;

describe("REL-911: every model can answer again", () => {
  it("a few stand in the menu", () => {
    offer(9);
    draw(<actions.OtherModels turn={turn} canCompare={false} />);
    expect(buttons()).toHaveLength(8);
    expect(named("More models")).toBeUndefined();
  });

  it("of many, the menu has the first and leads to all of them", () => {
    offer(31);
    draw(<actions.OtherModels turn={turn} canCompare={false} />);
    expect(buttons()).toHaveLength(9);
    act(() => named("More models").click());
    expect(comparing.value).toEqual({ turn, isInPlace: true });
    const onClose = vi.fn();
    draw(<compare.CompareDialog about={{ turn, isInPlace: true }} onClose={onClose} />);
    expect(buttons().filter((text) => text.includes("model-"))).toHaveLength(30);
    expect(at().querySelector('input[type="search"]')).not.toBeNull();
    act(() => named("model-30").click());
    expect(onClose).toHaveBeenCalled();
  });

  it("REL-1257: one of the same name at another provider is offered too", () => {
    offer(2);
    const [first] = choice.models.value ?? [];
    choice.models.value = [...(choice.models.value ?? []), { ...first, provider_id: "q" } as Model];
    draw(<actions.OtherModels turn={{ ...turn, model: "model-00" } as Turn} canCompare={false} />);
    expect(buttons()).toHaveLength(3);
  });
});
