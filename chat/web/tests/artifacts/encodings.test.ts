import { afterEach, beforeAll, expect, it, vi } from "vitest";
import { openPage } from "../page";

let files: typeof import("../../src/artifacts/state");

beforeAll(async () => {
  openPage({});
  files = await import("../../src/artifacts/state");
});
afterEach(() => vi.restoreAllMocks());

it.each([
  ["windows-1252", [0x47, 0x72, 0xfc, 0xdf, 0x65]],
  ["utf-16", [0xff, 0xfe, 0x47, 0, 0x72, 0, 0xfc, 0, 0xdf, 0, 0x65, 0]],
  ["utf-8", [0xef, 0xbb, 0xbf, 0x47, 0x72, 0xc3, 0xbc, 0xc3, 0x9f, 0x65]],
])("REL-1156: a file in %s is shown with its own letters", async (charset, bytes) => {
  const headers = { "content-type": `text/plain; charset=${charset}` };
  vi.spyOn(globalThis, "fetch").mockResolvedValue(new Response(new Uint8Array(bytes), { headers }));
  expect(await files.textOf(charset, 1)).toBe("Grüße");
});
