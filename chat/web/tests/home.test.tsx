import { render } from "preact";
import { act } from "preact/test-utils";
import { expect, test } from "vitest";
import type { Bud } from "../src/wire";
import { at, openPage, PLACE } from "./page";

test("the message field of the start page says why nobody can write while there is no bud", async () => {
  openPage({ body: PLACE });
  const { buds } = await import("../src/app");
  const { Home } = await import("../src/home/home");
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
  act(() => {
    buds.value = null;
    render(null, at());
  });
});

test("the start page tells of the demo model only where it answers", async () => {
  openPage({ body: PLACE, demo_model: true });
  const { buds } = await import("../src/app");
  const { chooseHomeBud } = await import("../src/chat/choice");
  const { Home } = await import("../src/home/home");
  const bud = (id: string, is_demo: boolean): Bud =>
    ({
      id,
      name: id,
      slug: id,
      description: "",
      starter_prompts: [],
      servers: [],
      model: { name: "m", is_demo },
    }) as unknown as Bud;
  const told = (): boolean => (at().textContent ?? "").includes("not an AI");
  act(() => {
    buds.value = [bud("real", false), bud("demo", true)];
    render(<Home />, at());
  });
  expect(told()).toBe(false);
  act(() => chooseHomeBud(buds.value?.[1] as Bud));
  expect(told()).toBe(true);
  act(() => {
    buds.value = null;
    render(null, at());
  });
});
