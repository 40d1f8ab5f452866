import { expect, test } from "vitest";
import { startCardLabels } from "../src/card-labels";

test("REL-917: names of columns on cards are in sentence case", () => {
  document.body.innerHTML =
    '<table><tr><th data-label="display name">A</th><td data-label="MCP server">B</td><td data-label="">C</td></tr></table>';
  startCardLabels();
  const labels = [...document.querySelectorAll<HTMLElement>("[data-label]")].map((one) => one.dataset.label);
  expect(labels).toEqual(["Display name", "MCP server", ""]);
});
