import { render } from "preact";
import { act } from "preact/test-utils";
import { beforeAll, expect, it, vi } from "vitest";
import { at, openPage, PLACE } from "../../page";

let chips: typeof import("../../../src/chat/composer/attachment-chips");
let uploads: typeof import("../../../src/chat/composer/uploads");

beforeAll(async () => {
  openPage({ max_file_bytes: 1000, body: `<textarea id="composer-text"></textarea>${PLACE}` });
  vi.resetModules();
  chips = await import("../../../src/chat/composer/attachment-chips");
  uploads = await import("../../../src/chat/composer/uploads");
});

const isAsked = (): boolean => {
  const event = new Event("beforeunload", { cancelable: true });
  window.dispatchEvent(event);
  return event.defaultPrevented;
};

it("REL-949: the browser asks before a page is left whose files have not arrived, and not for what cannot", () => {
  expect(isAsked()).toBe(false);
  uploads.takeFiles("home", undefined, [new File(["x".repeat(2000)], "too-large.txt")]);
  expect(isAsked()).toBe(false);
  uploads.takeFiles("home", undefined, [new File(["x"], "plan.txt")]);
  expect(isAsked()).toBe(true);
  for (const one of uploads.uploadsOf("home")) uploads.dropUpload("home", one.key);
  expect(isAsked()).toBe(false);
});

it("REL-950: who takes a file back by key goes on in the message", () => {
  uploads.takeFiles("home", undefined, [new File(["x"], "plan.txt")]);
  act(() => render(<chips.PickedChips draftKey="home" conversationId={undefined} />, at()));
  const drop = at().querySelector<HTMLButtonElement>(".chip-drop");
  drop?.focus();
  act(() => drop?.click());
  expect(at().querySelector(".chip")).toBeNull();
  expect(document.activeElement?.id).toBe("composer-text");
});

it("REL-1256: files stand in the order in which they were chosen, whichever arrives first", async () => {
  const along = await import("../../../src/store/picked");
  const waiting: { request: { onload?: () => void; status: number; responseText: string }; name: string }[] =
    [];
  vi.stubGlobal(
    "XMLHttpRequest",
    class {
      upload = {};
      status = 0;
      responseText = "";
      open() {}
      setRequestHeader() {}
      abort() {}
      send(form: FormData) {
        waiting.push({ request: this, name: String(form.get("name")) });
      }
    },
  );
  const arrive = (name: string) => {
    const one = waiting.find((other) => other.name === name);
    if (!one) throw new Error(name);
    const version = { number: 1, kind: "text", size: 1 };
    Object.assign(one.request, { status: 201, responseText: JSON.stringify({ id: name, name, version }) });
    one.request.onload?.();
  };
  const names = ["first.txt", "second.txt", "third.txt"];
  let haveArrived = false;
  const files = names.map((name) => new File(["x"], name));
  void uploads.takeFiles("c", "c", files).then((all) => {
    haveArrived = all;
  });
  arrive("third.txt");
  arrive("first.txt");
  expect(haveArrived).toBe(false);
  arrive("second.txt");
  await vi.waitFor(() => expect(along.picked.value.c?.map((one) => one.title)).toEqual(names));
  expect(haveArrived).toBe(true);
  // REL-3177: one that arrives keeps its place beside one that cannot.
  const two = [new File(["x".repeat(2000)], "huge.txt"), new File(["x"], "note.txt")];
  void uploads.takeFiles("d", "d", two);
  act(() => render(<chips.PickedChips draftKey="d" conversationId="d" />, at()));
  const shown = () => [...at().querySelectorAll(".chip .truncate")].map((one) => one.textContent);
  expect(shown()).toEqual(["huge.txt", "note.txt"]);
  act(() => arrive("note.txt"));
  await vi.waitFor(() => expect(along.picked.value.d?.length).toBe(1));
  expect(shown()).toEqual(["huge.txt", "note.txt"]);
  vi.unstubAllGlobals();
});

it("REL-2075: a file that was uploaded for a message leaves the chat where it is left out, and can come back", async () => {
  const along = await import("../../../src/store/picked");
  const { leaveOut } = await import("../../../src/chat/composer/leaving-out");
  const { toasts } = await import("../../../src/app/toasts");
  const file = { version: 1, kind: "text", size: 3 } as const;
  const asked: string[] = [];
  vi.stubGlobal("fetch", async (url: string, init: RequestInit) => {
    asked.push(`${init.method} ${url.split("/api/").at(-1)}`);
    if (init.method === "DELETE") return new Response(null, { status: 204 });
    return Response.json({ id: "a", name: "a (2).txt", version: { number: 1, kind: "text", size: 3 } });
  });
  along.picked.value = {
    c: [
      { ...file, artifact_id: "a", title: "a.txt", is_new: true },
      { ...file, artifact_id: "b", title: "b.txt" },
    ],
  };
  for (const one of along.picked.value.c ?? []) leaveOut("c", one);
  await vi.waitFor(() => expect(toasts.value.at(-1)?.text).toBe("Deleted “a.txt”."));
  expect(along.picked.value.c).toEqual([]);
  expect(asked).toEqual(["DELETE artifacts/a/?unless_sent=true"]);
  toasts.value.at(-1)?.action?.run();
  await vi.waitFor(() => expect(along.picked.value.c?.map((one) => one.title)).toEqual(["a (2).txt"]));
  vi.unstubAllGlobals();
});
