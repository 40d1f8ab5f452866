import { render } from "preact";
import { act } from "preact/test-utils";
import { expect, test, vi } from "vitest";
import type { Bud } from "../../src/wire";
import { at, openPage, PLACE } from "../page";

test("the message field of the start page says why nobody can write while there is no bud", async () => {
  openPage({ body: PLACE });
  const { buds } = await import("../app");
  const { Home } = await import("../../src/home/home");
  const field = (): HTMLTextAreaElement => at().querySelector("textarea") as HTMLTextAreaElement;
  act(() => render(<Home />, at()));
  expect(field().placeholder).toBe("Message");
  act(() => {
    buds.value = [];
  });
  expect([field().placeholder, field().disabled]).toEqual([
    "You can write here as soon as there is a bud",
    true,
  ]);
  expect(at().querySelector(".empty-state")?.textContent).toContain(
    "A workspace administrator can make one.",
  );
  act(() => {
    buds.value = null;
    render(null, at());
  });
});

test("REL-1661: the start page takes the focus and what is typed while its buds are on their way, and sends it then", async () => {
  openPage({ body: PLACE });
  const { buds } = await import("../app");
  const { Home } = await import("../../src/home/home");
  const field = (): HTMLTextAreaElement => at().querySelector("textarea") as HTMLTextAreaElement;
  const send = (): HTMLButtonElement => at().querySelector("[type=submit]") as HTMLButtonElement;
  act(() => {
    buds.value = null;
    render(<Home />, at());
  });
  expect([field().disabled, document.activeElement]).toEqual([false, field()]);
  act(() => {
    field().value = "Hello";
    field().dispatchEvent(new Event("input", { bubbles: true }));
  });
  expect(send().disabled).toBe(true);
  act(() => {
    buds.value = [
      { id: "b", name: "B", model: { name: "m", is_demo: true }, servers: [], starter_prompts: [] },
    ] as unknown as Bud[];
  });
  expect([field().value, document.activeElement, send().disabled]).toEqual(["Hello", field(), false]);
  act(() => {
    field().value = "";
    field().dispatchEvent(new Event("input", { bubbles: true }));
    buds.value = null;
    render(null, at());
  });
});

test("REL-1661: who presses Enter before the buds are there has the words sent once they are, and not if they write on", async () => {
  openPage({ body: PLACE });
  const asked: unknown[] = [];
  vi.stubGlobal("fetch", async (url: string, init: RequestInit) => {
    if (url === "/api/conversations/" && init.method === "POST") asked.push(JSON.parse(String(init.body)));
    return new Response("", { status: 500 });
  });
  const { buds } = await import("../app");
  const { Home } = await import("../../src/home/home");
  const field = (): HTMLTextAreaElement => at().querySelector("textarea") as HTMLTextAreaElement;
  const type = (text: string) =>
    act(() => {
      field().value = text;
      field().dispatchEvent(new Event("input", { bubbles: true }));
    });
  const enter = () =>
    act(() => {
      field().dispatchEvent(new KeyboardEvent("keydown", { key: "Enter", bubbles: true, cancelable: true }));
    });
  const arrive = () =>
    act(() => {
      buds.value = [
        { id: "b", name: "B", model: { name: "m", is_demo: true }, servers: [], starter_prompts: [] },
      ] as unknown as Bud[];
    });
  act(() => {
    buds.value = null;
    render(<Home />, at());
  });
  type("Hello");
  enter();
  type("Hello, you");
  arrive();
  expect(field().value).toBe("Hello, you");
  expect(asked).toEqual([]);
  act(() => {
    buds.value = null;
  });
  enter();
  expect(asked).toEqual([]);
  expect(at().textContent).toContain("This is sent as soon as a bud can answer.");
  arrive();
  await vi.waitFor(() => expect(asked).toHaveLength(1));
  act(() => {
    buds.value = null;
    render(null, at());
  });
  vi.unstubAllGlobals();
});

test("REL-1352: the start page tells of the demo model where it answers, and not where another one does", async () => {
  openPage({ body: PLACE });
  const { buds } = await import("../app");
  const { Home } = await import("../../src/home/home");
  const { chooseHomeBud } = await import("../../src/chat/composer/choice");
  const bud = (name: string, is_demo: boolean) =>
    ({
      id: name,
      name,
      model: { name: "m", provider_id: null, is_demo },
      servers: [],
      starter_prompts: [],
    }) as unknown as Bud;
  const [clock, walker] = [bud("Clock", true), bud("Walker", false)];
  act(() => {
    buds.value = [clock, walker];
    render(<Home />, at());
  });
  const says = () => at().textContent?.includes("not an AI");
  expect(says()).toBe(true);
  // Whoever may not connect a model reads whom to ask.
  expect(at().textContent).toContain("ask an administrator");
  act(() => chooseHomeBud(walker.id));
  expect(says()).toBe(false);
  act(() => {
    buds.value = null;
    render(null, at());
  });
});

test("REL-2721: a bud is chosen before the page knows the buds, and answers as soon as it does", async () => {
  openPage({ body: PLACE });
  const { buds } = await import("../app");
  const { chooseHomeBud, homeBud } = await import("../../src/chat/composer/choice");
  chooseHomeBud("Walker");
  buds.value = ["Clock", "Walker"].map((id) => ({ id }) as unknown as Bud);
  expect(homeBud.value?.id).toBe("Walker");
  buds.value = null;
});
