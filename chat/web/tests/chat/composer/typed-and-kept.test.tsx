/** What somebody has typed, and where they are on the page, while what they typed it for changes or goes. */
import { render } from "preact";
import { act } from "preact/test-utils";
import { afterEach, beforeAll, describe, expect, it, vi } from "vitest";
import { emptyConversation } from "../../../src/store/conversation";
import type { QueuedMessage, Turn } from "../../../src/wire";
import { at, openPage, PLACE } from "../../page";
import { CONVERSATION, inputRequest, message, toolCall } from "../../rows";

let app: typeof import("../../app");
let notes: typeof import("../../../src/app/toasts");
let start: typeof import("../../../src/app/boot");
let branches: typeof import("../../../src/chat/messages/branches");
let queued: typeof import("../../../src/chat/composer/queued");
let composer: typeof import("../../../src/chat/composer/composer");
let actions: typeof import("../../../src/chat/messages/answer-actions");
let draft: typeof import("../../../src/store/draft");
let focus: typeof import("../../../src/ui/refocus");

beforeAll(async () => {
  openPage({
    max_message_characters: 5,
    body: `${PLACE}<form class="composer-bar"><button>+</button></form><textarea id="composer-text">`,
  });
  vi.stubGlobal("fetch", async () => new Response("", { status: 500 }));
  vi.resetModules();
  app = await import("../../app");
  notes = await import("../../../src/app/toasts");
  start = await import("../../../src/app/boot");
  branches = await import("../../../src/chat/messages/branches");
  queued = await import("../../../src/chat/composer/queued");
  composer = await import("../../../src/chat/composer/composer");
  actions = await import("../../../src/chat/messages/answer-actions");
  draft = await import("../../../src/store/draft");
  focus = await import("../../../src/ui/refocus");
});
afterEach(() => {
  draw(null);
  localStorage.clear();
});

const draw = (node: Parameters<typeof render>[0]): void => act(() => render(node, at())) as unknown as void;
const named = (name: string): HTMLButtonElement =>
  [...at().querySelectorAll("button")].find(
    (one) => one.textContent === name || one.getAttribute("aria-label") === name,
  ) as HTMLButtonElement;
const field = (): HTMLTextAreaElement => at().querySelector("textarea") as HTMLTextAreaElement;
const type = (text: string): void =>
  act(() => {
    field().value = text;
    field().dispatchEvent(new Event("input", { bubbles: true }));
  }) as unknown as void;
const press = (key: string): void =>
  act(
    () => void field().dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true })),
  ) as unknown as void;

describe("a question being worded anew", () => {
  const question = message({ id: "q", role: "user", text: "Which day?" });
  const editor = () => <branches.MessageEditor message={question} onClose={() => draw(null)} />;

  it("REL-1243: keeps its words while another branch or chat is shown", () => {
    draw(editor());
    type("Which day, and why?");
    draw(null);
    expect(branches.isReworded(question)).toBe(true);
    draw(editor());
    expect(field().value).toBe("Which day, and why?");
    press("Escape");
    expect(branches.isReworded(question)).toBe(false);
    draw(editor());
    expect(field().value).toBe("Which day?");
  });

  it("REL-1245: gives the focus to the message field when it is left", () => {
    draw(editor());
    expect(document.activeElement).toBe(field());
    press("Escape");
    expect(document.activeElement?.id).toBe("composer-text");
  });
});

describe("a waiting message being changed", () => {
  const row: QueuedMessage = {
    id: "w",
    conversation_id: CONVERSATION,
    client_id: "c",
    text: "Later",
    bud_id: null,
    compare: [],
    attachments: [],
    is_next: false,
    held_after: null,
    created_at: "2026-11-21T08:00:00Z",
  };
  const withRows = (...rows: QueuedMessage[]): void =>
    act(() => {
      app.openState.value = { ...emptyConversation(CONVERSATION), seq: 1, queue: rows };
    }) as unknown as void;

  it("REL-1244: that is sent meanwhile leaves what was typed in the message field, and says so", () => {
    app.place.value = CONVERSATION;
    notes.toasts.value = [];
    withRows(row);
    draw(<queued.QueuedMessages />);
    for (const words of ["Later", "Later, but in French"]) {
      withRows(row);
      act(() => named("Edit the waiting message").click());
      expect(document.activeElement).toBe(field());
      type(words);
      withRows();
      expect(at().querySelector("textarea")).toBeNull();
    }
    expect(draft.draftOf(CONVERSATION)).toBe("Later, but in French");
    expect(notes.toasts.value.map((one) => one.text)).toEqual([
      "The message that you were changing is no longer waiting. Your change is in the message field.",
    ]);
  });

  it("REL-1348: that was held says truly why", () => {
    app.place.value = CONVERSATION;
    const after = (status: Turn["status"]): string => {
      act(() => {
        const turns = [{ id: "t", status } as Turn];
        app.openState.value = { ...emptyConversation(CONVERSATION), seq: 1, queue: [row], turns };
      });
      draw(<queued.QueuedMessages />);
      return at().querySelector(".queued p")?.textContent ?? "";
    };
    expect(after("cancelled")).toBe("Not sent because the previous answer was stopped.");
    expect(after("failed")).toBe("Not sent because the previous answer failed.");
    expect(after("running")).toBe("Sent when the answer is complete:");
  });

  it("REL-2461: stands apart from those that will be sent, while another answer comes", () => {
    const held: QueuedMessage = { ...row, id: "h", text: "Held", held_after: "cancelled" };
    act(() => {
      const turns = [{ id: "t", status: "running" } as Turn];
      app.openState.value = { ...emptyConversation(CONVERSATION), seq: 1, queue: [held, row], turns };
    });
    draw(<queued.QueuedMessages />);
    expect([...at().querySelectorAll(".queued > div")].map((part) => part.textContent)).toEqual([
      expect.stringMatching(/^Not sent because the previous answer was stopped\.\s*Held/),
      expect.stringMatching(/^Sent when the answer is complete:\s*Later/),
    ]);
  });

  it("REL-1245: takes the focus each time, and gives it to the message field", () => {
    app.place.value = CONVERSATION;
    withRows(row);
    draw(<queued.QueuedMessages />);
    for (const _ of [1, 2]) {
      act(() => named("Edit the waiting message").click());
      expect(document.activeElement).toBe(field());
      press("Escape");
      expect(document.activeElement?.id).toBe("composer-text");
    }
  });
});

it("REL-1245: a reason for a rating that is left gives the focus to the message field", async () => {
  const turn = { id: "t", rating: null } as Turn;
  vi.spyOn(app.socket, "ask").mockResolvedValue({ type: "accepted", ref: "r" });
  draw(
    <>
      <actions.AnswerActions turn={turn} last={undefined} text="" />
      <actions.RatingForm turn={turn} />
    </>,
  );
  await act(async () => {
    named("Good answer").click();
    await vi.waitFor(() => expect(app.socket.ask).toHaveResolved());
  });
  expect(document.activeElement).toBe(field());
  press("Escape");
  expect(document.activeElement?.id).toBe("composer-text");
  vi.restoreAllMocks();
});

it("REL-1246: an answer that could not be stopped can be stopped again", async () => {
  const answers = [false, true];
  const onStop = vi.fn(async () => answers.shift() ?? true);
  const parts = { draftKey: "x", label: "Message", placeholder: "", isRunning: true, onSend: async () => {} };
  draw(<composer.Composer {...parts} onStop={onStop} />);
  for (const isAsked of [false, true]) {
    await act(async () => named("Stop").click());
    expect(named("Stop").disabled).toBe(isAsked);
  }
  expect(onStop).toHaveBeenCalledTimes(2);
});

it("REL-1777: a slash opens the commands where it is typed, and not in another window that is shown the draft", () => {
  draw(<composer.Composer draftKey="slash" label="Message" placeholder="" onSend={async () => {}} />);
  Element.prototype.scrollIntoView = () => {};
  const menu = () => at().querySelector("[role=listbox]");
  act(() => draft.keepDraft("slash", "/"));
  expect(field().value).toBe("/");
  expect(menu()).toBeNull();
  type("/b");
  expect(menu()).not.toBeNull();
  act(() => draft.keepDraft("slash", "/bu"));
  expect(menu()).toBeNull();
});

it("REL-2530: a press beside the commands closes them, and what was typed stays", () => {
  draw(<composer.Composer draftKey="beside" label="Message" placeholder="" onSend={async () => {}} />);
  const menu = () => at().querySelector("[role=listbox]");
  const pressed = (on: Element) =>
    act(() => void on.dispatchEvent(new Event("pointerdown", { bubbles: true })));
  type("/b");
  pressed(field());
  pressed(menu() as Element);
  expect(menu()).not.toBeNull();
  pressed(document.body);
  expect(menu()).toBeNull();
  expect(field().value).toBe("/b");
});

it("REL-1247: no keyboard of a phone comes up for a message field that nobody touched", () => {
  vi.stubGlobal("matchMedia", () => ({ matches: true }));
  focus.toComposer();
  expect(document.activeElement?.textContent).toBe("+");
  focus.refocus(null);
  expect(document.activeElement?.textContent).toBe("+");
  vi.unstubAllGlobals();
});

it("REL-1531: the message field has the focus of a chat that opens, but not from somebody who has gone on meanwhile", () => {
  const parts = { label: "Message", placeholder: "", onSend: async () => {} };
  const away = document.querySelector(".composer-bar button") as HTMLButtonElement;
  for (const [id, goesOn] of [
    [CONVERSATION.replace(/.$/, "2"), false],
    [CONVERSATION.replace(/.$/, "3"), true],
  ] as const) {
    away.focus();
    app.go(app.conversationPath(id));
    if (goesOn) away.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter", bubbles: true }));
    draw(<composer.Composer {...parts} draftKey={id} />);
    expect(document.activeElement).toBe(goesOn ? away : field());
    draw(null);
  }
});

it("REL-1255: a message that is too long stays in its field, and nothing of it is sent", () => {
  notes.toasts.value = [];
  const onSend = vi.fn(async () => {});
  const parts = { draftKey: "y", label: "Message", placeholder: "", onSend };
  draw(<composer.Composer {...parts} />);
  for (const [words, sends] of [
    ["123456", 0],
    ["😀😀😀😀😀", 1],
  ] as const) {
    type(words);
    press("Enter");
    expect(onSend).toHaveBeenCalledTimes(sends);
    expect(field().value).toBe(sends ? "" : words);
  }
  expect(notes.toasts.value.map((one) => one.text)).toEqual([
    "This message is too long. It can have up to 5 characters. Shorten it, or attach it as a file.",
  ]);
});

it("REL-3165: a message that is too long becomes a file, and can be put back", async () => {
  const { uploadsOf } = await import("../../../src/chat/composer/uploads");
  notes.toasts.value = [];
  draw(<composer.Composer draftKey="long" label="Message" placeholder="" onSend={async () => {}} />);
  type("123456");
  press("Enter");
  type("1234567");
  notes.toasts.value.at(-1)?.action?.run();
  await vi.waitFor(() => expect(field().value).toBe(""));
  expect(await uploadsOf("long")[0]?.file.text()).toBe("1234567");
  type("why?");
  act(() => notes.toasts.value.at(-1)?.action?.run());
  expect(field().value).toBe("1234567\n\nwhy?");
});

describe("REL-1356: what is typed on a card is there again after another chat was shown", () => {
  beforeAll(() => {
    Element.prototype.scrollIntoView = () => {};
    Object.assign(start.boot.urls, { call_rules: "", permissions: "/p/" });
  });
  const input = (): HTMLInputElement => at().querySelector("input") as HTMLInputElement;
  const fill = (text: string): void =>
    act(() => {
      input().value = text;
      input().dispatchEvent(new Event("input", { bubbles: true }));
    }) as unknown as void;
  const again = (card: () => Parameters<typeof render>[0]): void => {
    draw(null);
    draw(card());
  };

  it("an answer to a server, until it was given", async () => {
    const { InputCard } = await import("../../../src/chat/calls/input-card");
    const schema = { type: "object", properties: { city: { type: "string" } } };
    const card = () => <InputCard request={inputRequest({ kind: "form", schema })} />;
    draw(card());
    fill("Lima");
    again(card);
    expect(input().value).toBe("Lima");
    vi.spyOn(app.socket, "ask").mockResolvedValue({ type: "accepted", ref: "r" });
    await act(async () => at().querySelector<HTMLElement>("[type=submit]")?.click());
    again(card);
    expect(input().value).toBe("");
    vi.restoreAllMocks();
  });

  it("the reason of a refusal", async () => {
    const { ApprovalCard } = await import("../../../src/chat/calls/approval-card");
    const card = () => <ApprovalCard call={toolCall({ status: "waiting_for_approval" })} />;
    draw(card());
    act(() => named("Refuse…").click());
    expect(document.activeElement).toBe(input());
    fill("Not on a Sunday");
    again(card);
    expect(input().value).toBe("Not on a Sunday");
    // Nobody asked for the focus this time.
    expect(document.activeElement).not.toBe(input());
    act(() => named("Back").click());
    again(card);
    expect(input()).toBeNull();
  });

  it("what somebody found out about a call whose outcome is unknown", async () => {
    const { UnknownCard } = await import("../../../src/chat/calls/unknown-card");
    const card = () => <UnknownCard call={toolCall({ status: "outcome_unknown" })} />;
    draw(card());
    fill("It is in the list");
    again(card);
    expect(input().value).toBe("It is in the list");
  });
});
