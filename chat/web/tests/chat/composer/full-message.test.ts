import { afterEach, beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import type { PickedResource } from "../../../src/store/attachments";
import { openPage } from "../../page";

let along: typeof import("../../../src/store/picked");
let notes: typeof import("../../../src/app/toasts");
let uploads: typeof import("../../../src/chat/composer/uploads");

beforeAll(async () => {
  openPage({ max_file_bytes: 1000 });
  vi.resetModules();
  along = await import("../../../src/store/picked");
  notes = await import("../../../src/app/toasts");
  uploads = await import("../../../src/chat/composer/uploads");
});

const resource = (number: number): PickedResource => ({
  server_id: "s",
  server_name: "notes",
  uri: `n://${number}`,
  title: `Note ${number}`,
  resource_id: null,
});
const files = (number: number): File[] =>
  Array.from({ length: number }, (_, i) => new File(["x"], `${i}.txt`));
const said = (): string[] => notes.toasts.value.map((one) => one.text);

afterEach(() => {
  for (const one of uploads.uploadsOf("home")) uploads.dropUpload("home", one.key);
});

beforeEach(() => {
  notes.toasts.value = [];
  along.picked.value = {};
});

describe("REL-919: what a full message leaves out is named", () => {
  it("files count together with what is attached already", () => {
    for (let i = 0; i < 8; i += 1) along.takeAlong("home", resource(i));
    uploads.takeFiles("home", undefined, files(5));
    expect(uploads.uploadsOf("home")).toHaveLength(2);
    expect(said()).toEqual(["A message takes up to 10 files. 3 files were left out."]);
  });

  it("and one that comes to a full message is named, once it is none of those attached", () => {
    for (let i = 0; i < 10; i += 1) along.takeAlong("c", resource(i));
    along.takeAlong("c", resource(3));
    expect(said()).toEqual([]);
    along.takeAlong("c", resource(10));
    expect(said()).toEqual(["A message takes up to 10 files. “Note 10” was left out."]);
    expect(along.picked.value.c).toHaveLength(10);
  });
});
