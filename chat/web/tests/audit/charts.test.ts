import { beforeAll, expect, it } from "vitest";
import { openPage } from "../page";

let audit: typeof import("../../src/audit");

beforeAll(async () => {
  openPage({});
  audit = await import("../../src/audit");
});

it("REL-1151: a line of the report ends where nothing was counted, and begins anew after it", () => {
  const series = { key: "p50", label: "p50", values: [3, null, null, 5] };
  const line = audit.dataset(series, 0, true);
  expect(line.data).toEqual([3, null, null, 5]);
  expect("spanGaps" in line && line.spanGaps).toBe(false);
});
