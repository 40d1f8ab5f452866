import { expect, test } from "vitest";
import { startUnfolding } from "../../src/pages/unfolding";

test("REL-1260: a value that does not fit opens the folded parts that it is in, and no others", () => {
  document.body.innerHTML =
    '<form><details id="outer"><details id="inner"><input type="number" max="2" value="3"></details></details>' +
    '<details id="other"><input type="number" max="2" value="1"></details></form>';
  startUnfolding();
  expect(document.querySelector("form")?.reportValidity()).toBe(false);
  const open = [...document.querySelectorAll("details[open]")].map((part) => part.id);
  expect(open).toEqual(["outer", "inner"]);
});
