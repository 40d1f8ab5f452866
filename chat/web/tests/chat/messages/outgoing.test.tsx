import { render } from "preact";
import { act } from "preact/test-utils";
import { expect, it } from "vitest";
import type { Outgoing } from "../../../src/store/conversation";
import { at, openPage, PLACE } from "../../page";

openPage({ body: PLACE });
const { OutgoingMessage } = await import("../../../src/chat/messages/outgoing");
const { socketStatus } = await import("../../../src/app/connection");

it("REL-1831: promises no sending to whoever may no longer enter, and says that nothing is lost", () => {
  const outgoing = { client_id: "m1", text: "Hello", error: null, attachments: [], compare: [] };
  const before = socketStatus.value;
  const told = (["open", "reconnecting", "forbidden", "signed_out"] as const).map((status) => {
    socketStatus.value = status;
    act(() => render(<OutgoingMessage outgoing={outgoing as unknown as Outgoing} />, at()));
    return at().querySelector("p")?.textContent;
  });
  const kept = "Not sent. This browser keeps it for a week, and sends it if you can enter again.";
  expect(told).toEqual(["Sending…", "Sends when the connection is back", kept, kept]);
  act(() => render(null, at()));
  socketStatus.value = before;
});
