import { render } from "preact";
import { expect, it } from "vitest";
import { SkipLink } from "../../src/app/skip-link";

it("REL-3193: leads to the message field once it is there, and before that to the page's content", () => {
  const root = document.createElement("div");
  document.body.replaceChildren(root);
  render(<SkipLink />, root);
  const link = root.querySelector("a");
  if (!link) throw new Error("no link");
  const press = () => {
    const click = new MouseEvent("click", { bubbles: true, cancelable: true });
    link.dispatchEvent(click);
    return click.defaultPrevented;
  };
  expect([press(), link.hash]).toEqual([false, "#main"]);
  const field = document.createElement("textarea");
  field.id = "composer-text";
  document.body.append(field);
  expect([press(), document.activeElement]).toEqual([true, field]);
});
