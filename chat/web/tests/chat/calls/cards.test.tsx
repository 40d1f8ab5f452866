import { render } from "preact";
import { act } from "preact/test-utils";
import { afterEach, beforeAll, describe, expect, it } from "vitest";
import type { Json, Turn } from "../../../src/wire";
import { at, openPage, PLACE } from "../../page";
import { inputRequest, turn } from "../../rows";

type Cards = typeof import("../../../src/chat/calls/input-card");
type Results = typeof import("../../../src/chat/calls/result");

let cards: Cards;
let results: Results;

beforeAll(async () => {
  openPage({ body: PLACE });
  Element.prototype.scrollIntoView = () => {};
  cards = await import("../../../src/chat/calls/input-card");
  results = await import("../../../src/chat/calls/result");
});

const draw = (node: Parameters<typeof render>[0]): void => {
  act(() => render(node, at()));
};
afterEach(() => draw(null));

const LOADS = "img, iframe, object, embed, link, video, audio, source, script";

describe("a server's link", () => {
  const url = "https://xn--bnk-0na.example/in?x=1";
  const row = inputRequest({ kind: "url", url, url_host: "xn--bnk-0na.example", warnings: ["Look twice."] });

  it("SEC-69: is shown whole with its host marked, opened without opener, and never fetched", () => {
    draw(<cards.InputCard request={row} />);
    expect(at().textContent).toContain(url);
    expect(at().querySelector("mark")?.textContent).toBe("xn--bnk-0na.example");
    expect(at().textContent).toContain("Look twice.");
    expect(at().textContent).toContain("shop");
    const [link, ...others] = at().querySelectorAll("a");
    expect(others).toEqual([]);
    expect(link?.getAttribute("href")).toBe(url);
    expect(link?.getAttribute("target")).toBe("_blank");
    expect(link?.getAttribute("rel")).toBe("noopener noreferrer");
    expect(at().querySelectorAll(LOADS)).toHaveLength(0);
  });

  it("SEC-69: has no button where it is not https", () => {
    for (const bad of ["http://a.example/", "javascript:alert(1)", "https://user:pw@a.example/"]) {
      draw(<cards.InputCard request={{ ...row, id: bad, url: bad, url_host: "a.example" }} />);
      expect(at().querySelectorAll("a"), bad).toHaveLength(0);
      draw(null);
    }
  });
});

describe("a server's form", () => {
  it("REL-1902: is sent by nobody who was shut out of the workspace", async () => {
    const { socketStatus } = await import("../../../src/app/connection");
    draw(<cards.InputCard request={inputRequest({})} />);
    expect(at().querySelectorAll("button.btn:enabled")).not.toHaveLength(0);
    act(() => {
      socketStatus.value = "access_suspended";
    });
    expect(at().querySelectorAll("button.btn:enabled")).toHaveLength(0);
    socketStatus.value = "open";
  });

  it("SEC-69: can be declined, and shows its texts as text", () => {
    const message = "<b onclick=alert(1)>Which year?</b>";
    draw(<cards.InputCard request={inputRequest({ message })} />);
    expect(at().textContent).toContain(message);
    expect([...at().querySelectorAll("button")].map((b) => b.textContent?.trim())).toEqual([
      "Submit",
      "Decline",
      "Cancel",
    ]);
  });

  it("keeps the answer in sight", () => {
    draw(<cards.AnsweredInput request={inputRequest({ status: "accepted", answer: { year: 2024 } })} />);
    expect(at().textContent).toContain("Year2024");
  });

  it("REL-2154: shows what was put to nobody, and why", () => {
    const refused = { status: "refused", message: "Your address?", schema: {} } as const;
    draw(
      <cards.AnsweredInput request={inputRequest({ ...refused, warnings: ["its form has no fields."] })} />,
    );
    expect(at().textContent).toContain("asked: “Your address?”");
    expect(at().textContent).toContain("Trellis did not put this to you: its form has no fields.");
    draw(<cards.AnsweredInput request={inputRequest({ ...refused, message: "", warnings: [] })} />);
    expect(at().textContent).toContain("had a question");
  });
});

describe("a result", () => {
  it("SEC-73: names resources as text, and loads nothing", () => {
    draw(
      <results.Result
        truncated={false}
        origin={{ conversationId: "c", server: { id: "s", name: "shop" } }}
        content={[
          { type: "resource_link", uri: "file:///etc/passwd", name: "secret" },
          { type: "resource_link", uri: "https://beacon.example/1.png", name: "beacon" },
          { type: "resource", uri: "note://1", mime_type: "text/html", text: "<img src=x>" },
          { type: "image", mime_type: "image/svg+xml", data: "PHN2Zy8+" },
        ]}
      />,
    );
    expect(at().querySelectorAll(LOADS)).toHaveLength(0);
    expect([...at().querySelectorAll("a")].map((a) => a.getAttribute("href"))).toEqual([
      "https://beacon.example/1.png",
    ]);
    expect(at().textContent).toContain("<img src=x>");
    expect(
      [...at().querySelectorAll("button")].filter((b) => b.textContent?.trim() === "Attach"),
    ).toHaveLength(2);
  });

  it("shows data beside a text that says something else, and once where both say the same", () => {
    const content = [{ type: "text" as const, text: '{"a":1}' }];
    draw(<results.Result content={content} truncated={false} structured={{ a: 1 }} />);
    expect(at().textContent).not.toContain("As data");
    const wrapped: [string[], unknown][] = [
      [["Deleted."], "Deleted."],
      [["5"], 5],
      [['{"a":1}'], { a: 1 }],
      [
        ["one", "two"],
        ["one", "two"],
      ],
    ];
    for (const [texts, result] of wrapped) {
      const said = texts.map((text) => ({ type: "text" as const, text }));
      draw(<results.Result content={said} truncated={false} structured={{ result } as Json} />);
      expect(at().textContent).not.toContain("As data");
    }
    draw(<results.Result content={content} truncated={false} structured={{ result: "other" }} />);
    expect(at().textContent).toContain("As data");
    draw(<results.Result content={content} truncated={false} structured={{ a: 2 }} />);
    expect(at().textContent).toContain("As data");
    draw(
      <results.Result
        content={content}
        truncated={false}
        structuredProblem="does not fit the output schema"
      />,
    );
    expect(at().textContent).toContain("did not match the server's schema");
  });
});

describe("an answer that failed because of a provider's key", () => {
  const error = { code: "provider_key_refused", message: "“A” refused the API key.", can_retry: true };
  const failed = { ...turn(), status: "failed", error } as Turn;

  it("REL-813: leads whoever may change the key to the providers, and nobody else", async () => {
    const [{ TurnEnd }, { boot }] = await Promise.all([
      import("../../../src/chat/messages/answer-body"),
      import("../../../src/app/boot"),
    ]);
    draw(<TurnEnd turn={failed} canRetry />);
    expect(at().textContent).toContain(error.message);
    expect(at().querySelector("a")).toBeNull();
    draw(null);
    boot.urls.providers = "/admin/providers/";
    draw(<TurnEnd turn={failed} canRetry />);
    expect(at().querySelector("a")?.getAttribute("href")).toBe("/admin/providers/");
    draw(<TurnEnd turn={{ ...failed, error: { ...error, code: "provider_stalled" } }} canRetry />);
    expect(at().querySelector("a")).toBeNull();
  });
});
