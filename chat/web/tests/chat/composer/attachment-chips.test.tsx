import { render } from "preact";
import { act } from "preact/test-utils";
import { expect, it, vi } from "vitest";
import type { Attachment } from "../../../src/wire";
import { at, openPage, PLACE } from "../../page";

openPage({ body: PLACE });
const { AttachmentChips } = await import("../../../src/chat/composer/attachment-chips");
const { serverIcons } = await import("../../../src/app/server-tile");
const { picked } = await import("../../../src/store/picked");

serverIcons.value = {};

const resource = (values: Partial<Attachment>): Attachment => ({
  id: "a1",
  server: { id: "s1", name: "notes" },
  file: null,
  resource_id: "r1",
  uri: "note://all",
  title: "All notes",
  mime_type: "text/plain",
  status: "ready",
  error: null,
  preview: "",
  size: null,
  read_at: "2026-11-28T12:00:00Z",
  changed_at: null,
  ...values,
});

const draw = (values: Partial<Attachment>) =>
  act(() => render(<AttachmentChips attachments={[resource(values)]} conversationId="c1" />, at()));

it("REL-1829: offers a resource once more that could not be read, for the next message", () => {
  draw({ status: "failed", error: "notes: Trellis could not reach the server." });
  const again = [...at().querySelectorAll("button")].find((one) => one.textContent === "Read again");
  act(() => again?.click());
  expect(picked.value.c1?.map((one) => one.title)).toEqual(["All notes"]);
});

it("REL-1825: says quietly what is missing of one that was read", () => {
  draw({ error: "Only its beginning could be read." });
  expect(at().querySelector(".field-error")).toBeNull();
  expect(at().textContent).toContain("Only its beginning could be read.");
  expect(at().textContent).not.toContain("Read again");
});

it("REL-1901: shows the beginning of a resource at once, and fetches the rest when it is opened", async () => {
  const asked: string[] = [];
  const answers = [
    new Response("", { status: 500 }),
    new Response(JSON.stringify({ id: "a1", content: [{ type: "text", text: "All of it" }] })),
  ];
  vi.stubGlobal("fetch", async (url: string) => {
    // The page keeps its drafts, too.
    if (!url.includes("attachments")) return new Response("{}");
    asked.push(url);
    return answers.shift();
  });
  const press = (word: string) =>
    act(async () => {
      [...at().querySelectorAll("button")].find((one) => one.textContent?.includes(word))?.click();
    });
  draw({ preview: "All", size: 9 });
  expect(asked).toEqual([]);
  await press("All notes");
  await vi.waitFor(() => expect(at().textContent).toContain("Try again"));
  expect(at().querySelector("pre")?.textContent).toBe("All");
  await press("Try again");
  await vi.waitFor(() => expect(at().querySelector("pre")?.textContent).toBe("All of it"));
  expect(asked).toEqual(["/api/attachments/a1/", "/api/attachments/a1/"]);
  vi.unstubAllGlobals();
});
