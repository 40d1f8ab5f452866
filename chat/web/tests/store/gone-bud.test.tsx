import { render } from "preact";
import { act } from "preact/test-utils";
import { beforeEach, expect, it } from "vitest";
import { at, openPage, PLACE } from "../page";
import { conversation } from "../rows";

openPage({ body: PLACE });
const { AnswerLine, ChoiceChip, ChooserDialog } = await import("../../src/chat/composer/chooser");
const { chooser } = await import("../../src/chat/composer/choice");
const { place } = await import("../../src/app/place");
const { buds } = await import("../../src/store/buds");
const { openState } = await import("../../src/store/open-conversation");
const { emptyConversation } = await import("../../src/store/conversation");

const row = conversation({ id: "c1" });

beforeEach(() => {
  place.value = "c1";
  openState.value = { ...emptyConversation("c1"), conversation: row, seq: 1 };
  chooser.value = null;
});

for (const [where, node] of [
  ["under the title", <AnswerLine bud={row.bud.name} model={undefined} />],
  ["in the message field", <ChoiceChip />],
] as const) {
  it(`REL-1830: another bud can be chosen ${where} where the chat's own is archived or withdrawn`, () => {
    buds.value = null;
    act(() => render(node, at()));
    expect(at().querySelector("button")).toBeNull(); // nobody knows yet
    act(() => {
      buds.value = [];
    });
    const button = at().querySelector("button");
    expect(button?.getAttribute("aria-label")).toBe(`Bud and model: ${row.bud.name}. Change`);
    act(() => button?.click());
    expect(chooser.value).toBe("buds");
    act(() => render(<ChooserDialog kind="buds" onClose={() => {}} />, at()));
    expect(at().textContent).toContain("is no longer offered to you. Choose another bud");
    act(() => render(null, at()));
  });
}
