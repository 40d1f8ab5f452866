import { render } from "preact";
import { act } from "preact/test-utils";
import { expect, test } from "vitest";
import { CheckForm } from "../../src/buds/checks/form";
import { openPage, PLACE } from "../page";

const asksBeforeLeaving = (): boolean => {
  const leaving = new Event("beforeunload", { cancelable: true });
  dispatchEvent(leaving);
  return leaving.defaultPrevented;
};

test("REL-1267: a check that somebody is writing is not lost when they leave, until it is saved or left", () => {
  openPage({ body: PLACE });
  const at = document.getElementById("at") as HTMLElement;
  const unsaved = { current: false };
  const none = () => undefined;
  const form = (
    <CheckForm check={null} problems={{}} isBusy={false} unsaved={unsaved} onSave={none} onCancel={none} />
  );
  act(() => render(form, at));
  expect([asksBeforeLeaving(), unsaved.current]).toEqual([false, false]);
  const question = at.querySelector("textarea") as HTMLTextAreaElement;
  const type = (text: string) =>
    act(() => {
      question.value = text;
      question.dispatchEvent(new Event("input", { bubbles: true }));
    });
  type("What time is it?");
  expect([asksBeforeLeaving(), unsaved.current]).toEqual([true, true]);
  type("");
  expect([asksBeforeLeaving(), unsaved.current]).toEqual([false, false]);
  type("Where?");
  act(() => render(null, at));
  expect([asksBeforeLeaving(), unsaved.current]).toEqual([false, false]);
});
