import { expect, test } from "vitest";
import { labelTables, startCardLabels } from "../../src/pages/card-labels";

test("REL-917: names of columns on cards are in sentence case", () => {
  document.body.innerHTML =
    '<table><tr><th data-label="display name">A</th><td data-label="MCP server">B</td><td data-label="">C</td></tr></table>';
  startCardLabels();
  const labels = [...document.querySelectorAll<HTMLElement>("[data-label]")].map((one) => one.dataset.label);
  expect(labels).toEqual(["Display name", "MCP server", ""]);
});

test("REL-945: each cell of a table has its column's name, but for what names the row and what is empty", () => {
  document.body.innerHTML = `<table class="data-table">
    <thead><tr><th scope="col"> Device </th><th scope="col">Address</th><th scope="col">Actions</th></tr></thead>
    <tbody>
      <tr><th scope="row">Firefox</th><td>10.0.0.1</td><td><button>Sign out</button></td></tr>
      <tr><td>Safari</td><td>–</td><td>
      </td></tr>
    </tbody></table>`;
  labelTables();
  const labels = [...document.querySelectorAll<HTMLElement>("tbody :is(th, td)")].map(
    (one) => one.dataset.label,
  );
  expect(labels).toEqual([undefined, "Address", "Actions", "Device", "Address", ""]);
});

test("REL-2523: the box that selects a row of the admin is named after the row", () => {
  document.body.innerHTML = `<table><tr>
    <td class="action-checkbox"><input type="checkbox" aria-label="Select record"></td>
    <th><a href="#">Clock</a></th><td>in use</td></tr></table>`;
  startCardLabels();
  expect(document.querySelector("input")?.ariaLabel).toBe("Select Clock");
});
