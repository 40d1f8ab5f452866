import { render } from "preact";
import { act } from "preact/test-utils";
import { expect, test } from "vitest";
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
