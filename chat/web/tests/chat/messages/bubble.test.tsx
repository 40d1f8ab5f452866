import { render } from "preact";
import { act } from "preact/test-utils";
import { describe, expect, test } from "vitest";
import { at, openPage, PLACE } from "../../page";

openPage({ body: PLACE });
const { Bubble, isLong, unfold } = await import("../../../src/chat/messages/bubble");

const long = "A line of a log.\n".repeat(60);
const button = () => at().querySelector("button");
const bubble = () => at().querySelector(".bubble") as HTMLElement;
const draw = (id: string, text: string) => act(() => render(<Bubble id={id} text={text} />, at()));

describe("REL-1668: of a long message the beginning is shown", () => {
  test("and what somebody types is not long", () => {
    expect([isLong("Hello"), isLong("word ".repeat(500)), isLong("line\n".repeat(30))]).toEqual([
      false,
      false,
      false,
    ]);
    expect([isLong("word ".repeat(700)), isLong(long)]).toEqual([true, true]);
    draw("short", "Hello");
    expect([button(), bubble().dataset.folded]).toEqual([null, undefined]);
  });

  test("a button shows all of it and less again, also after another chat was shown", () => {
    draw("a", long);
    expect([bubble().dataset.folded, button()?.getAttribute("aria-expanded")]).toEqual(["true", "false"]);
    expect(bubble().textContent?.length).toBeGreaterThan(900);
    act(() => button()?.click());
    expect([bubble().dataset.folded, button()?.textContent?.trim()]).toEqual([undefined, "Show less"]);
    act(() => render(null, at()));
    draw("a", long);
    expect(bubble().dataset.folded).toBe(undefined);
    act(() => button()?.click());
    expect(bubble().dataset.folded).toBe("true");
  });

  test("who looks for something in it sees it whole", () => {
    draw("b", long);
    act(() => unfold("b"));
    expect(bubble().dataset.folded).toBe(undefined);
  });
});
