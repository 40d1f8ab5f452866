import { expect, test } from "vitest";
import { startAddingLines } from "../../src/pages/adding-lines";

test("REL-1744: a name that is chosen or entered becomes a line, in place of the star for everything", () => {
  document.body.innerHTML =
    '<textarea id="tools">*</textarea><div data-adds-to="tools" hidden><input list="names"></div>';
  startAddingLines();
  const to = document.querySelector("textarea") as HTMLTextAreaElement;
  const from = document.querySelector("input") as HTMLInputElement;
  expect(from.parentElement?.hidden).toBe(false);
  const give = (value: string, event: Event) => {
    from.value = value;
    from.dispatchEvent(event);
  };
  give("read", new InputEvent("input", { inputType: "insertText" }));
  expect([to.value, from.value]).toEqual(["*", "read"]);
  give("read_file", new InputEvent("input", { inputType: "insertReplacementText" }));
  expect([to.value, from.value]).toEqual(["read_file", ""]);
  const enter = new KeyboardEvent("keydown", { key: "Enter", cancelable: true });
  give("delete_*", enter);
  expect(enter.defaultPrevented).toBe(true);
  give("read_file", new Event("change"));
  expect(to.value).toBe("read_file\ndelete_*");
});
