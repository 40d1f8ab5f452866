import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { reconnectDelay } from "../../src/net/backoff";
import { LiveSocket, type SocketStatus } from "../../src/net/socket";
import type { ServerEvent } from "../../src/wire";

class FakeSocket {
  static made: FakeSocket[] = [];
  readyState = 0;
  sent: string[] = [];
  onopen: (() => void) | null = null;
  onmessage: ((message: { data: unknown }) => void) | null = null;
  onclose: ((close: { code: number }) => void) | null = null;
  constructor(readonly url: string) {
    FakeSocket.made.push(this);
  }
  send(text: string) {
    this.sent.push(text);
  }
  close(code = 1006) {
    this.readyState = 3;
    this.onclose?.({ code });
  }
  accept() {
    this.readyState = 1;
    this.onopen?.();
  }
  say(event: unknown) {
    this.onmessage?.({ data: typeof event === "string" ? event : JSON.stringify(event) });
  }
}

const newest = (): FakeSocket => {
  const socket = FakeSocket.made.at(-1);
  if (!socket) throw new Error("no socket was opened");
  return socket;
};

describe("LiveSocket", () => {
  const events: ServerEvent[] = [];
  const statuses: SocketStatus[] = [];
  let opened = 0;
  let live: LiveSocket;

  beforeEach(() => {
    vi.useFakeTimers();
    vi.stubGlobal("WebSocket", Object.assign(FakeSocket, { OPEN: 1 }));
    FakeSocket.made = [];
    events.length = 0;
    statuses.length = 0;
    opened = 0;
    live = new LiveSocket({
      url: "ws://test/ws/w/demo/",
      most_bytes: 1000,
      onEvent: (event) => events.push(event),
      onStatus: (status) => statuses.push(status),
      onOpen: () => {
        opened += 1;
      },
      open: (url) => new FakeSocket(url) as unknown as WebSocket,
      random: () => 0.5,
    });
    live.start();
  });

  afterEach(() => {
    live.stop();
    vi.unstubAllGlobals();
  });

  it("REL-1255: sends nothing that the server would hang up on", async () => {
    newest().accept();
    const send = (text: string) => live.ask({ type: "send", conversation_id: "c", client_id: "k", text });
    await expect(send("語".repeat(400))).rejects.toMatchObject({ code: "too_long" });
    expect(newest().sent).toEqual([]);
    send("x".repeat(400)).catch(() => undefined);
    expect(newest().sent).toHaveLength(1);
  });

  it("matches replies to commands", async () => {
    newest().accept();
    const reply = live.ask({ type: "send", conversation_id: "c", client_id: "k", text: "hi" });
    const { ref } = JSON.parse(newest().sent[0] ?? "{}");
    newest().say({ type: "accepted", ref, message_id: "m", turn_id: "t" });
    await expect(reply).resolves.toMatchObject({ message_id: "m" });
    const refused = live.ask({ type: "stop", turn_id: "t" });
    newest().say({
      type: "error",
      ref: JSON.parse(newest().sent[1] ?? "{}").ref,
      code: "conflict",
      message: "No.",
    });
    await expect(refused).rejects.toMatchObject({ code: "conflict", message: "No." });
    expect(events).toEqual([]);
  });

  it("REL-2725: what it asks to follow is answered by what it hears of it then", async () => {
    newest().accept();
    const reply = live.ask({ type: "subscribe", conversation_id: "c" });
    const { ref } = JSON.parse(newest().sent[0] ?? "{}");
    const current = { type: "current", ref, conversation_id: "c", seq: 3 };
    newest().say(current);
    await expect(reply).resolves.toEqual(current);
    expect(events).toEqual([current]);
  });

  it("refuses a command at once without a connection, and fails those that wait when it breaks", async () => {
    await expect(live.ask({ type: "stop", turn_id: "t" })).rejects.toMatchObject({ code: "offline" });
    newest().accept();
    const waiting = live.ask({ type: "stop", turn_id: "t" });
    newest().close();
    await expect(waiting).rejects.toMatchObject({ code: "offline" });
  });

  it("comes back after 1, 2, 4, 8, 16, 16 seconds, and starts over once the server has spoken", () => {
    for (const seconds of [1, 2, 4, 8, 16, 16]) {
      const before = FakeSocket.made.length;
      newest().close(1012);
      vi.advanceTimersByTime(seconds * 1000 - 1);
      expect(FakeSocket.made.length).toBe(before);
      vi.advanceTimersByTime(1);
      expect(FakeSocket.made.length).toBe(before + 1);
    }
    newest().accept();
    newest().say({ type: "pong" });
    newest().close();
    vi.advanceTimersByTime(1000);
    newest().accept();
    expect(opened).toBe(2);
    expect(statuses).toContain("reconnecting");
    expect(statuses.at(-1)).toBe("open");
  });

  it.each([
    [4401, "signed_out"],
    [4403, "forbidden"],
    [4410, "account_off"],
  ])("stays away where coming back cannot help: %i", (code, status) => {
    newest().accept();
    newest().close(code);
    vi.advanceTimersByTime(60_000);
    expect(FakeSocket.made.length).toBe(1);
    expect(statuses.at(-1)).toBe(status);
  });

  it("SEC-681: comes back after a minute where the person has too many pages open, or when they say so", () => {
    newest().accept();
    newest().close(4429);
    expect(statuses.at(-1)).toBe("crowded");
    vi.advanceTimersByTime(59_000);
    expect(FakeSocket.made.length).toBe(1);
    vi.advanceTimersByTime(1_000);
    expect(FakeSocket.made.length).toBe(2);
    newest().accept();
    newest().close(4429);
    live.hurry();
    expect(FakeSocket.made.length).toBe(3);
    newest().accept();
    newest().say({ type: "pong" });
    expect(statuses.at(-1)).toBe("open");
  });

  it("REL-1903: asks calmly whether it may come back, and says nothing else meanwhile", () => {
    for (const [code, status] of [
      [4423, "workspace_suspended"],
      [4424, "access_suspended"],
      [4425, "two_steps_needed"],
      [4429, "crowded"],
    ] as const) {
      newest().accept();
      newest().close(code);
      const [told, before] = [statuses.length, opened];
      vi.advanceTimersByTime(60_000);
      newest().accept();
      newest().close(code);
      expect(statuses.slice(told)).toEqual([status]);
      document.dispatchEvent(new Event("visibilitychange"));
      newest().accept();
      expect(opened).toBe(before);
      expect(newest().sent).toEqual(['{"type":"ping"}']);
      newest().say({ type: "pong" });
      expect(opened).toBe(before + 1);
      expect(statuses.at(-1)).toBe("open");
    }
  });

  it("notices a dead connection by a missing answer to its ping", () => {
    newest().accept();
    vi.advanceTimersByTime(25_000);
    expect(newest().sent).toEqual(['{"type":"ping"}']);
    vi.advanceTimersByTime(10_000);
    expect(statuses.at(-1)).toBe("reconnecting");
  });

  it("REL-1458: comes back at once from a connection whose end the browser still waits for", async () => {
    const first = newest();
    first.accept();
    first.close = () => {
      first.readyState = 2; // the other side says nothing to it
    };
    const waiting = live.ask({ type: "stop", turn_id: "t" });
    globalThis.dispatchEvent(new Event("offline"));
    await expect(waiting).rejects.toMatchObject({ code: "offline" });
    expect(statuses.at(-1)).toBe("reconnecting");
    globalThis.dispatchEvent(new Event("online"));
    expect(FakeSocket.made).toHaveLength(2);
    newest().accept();
    first.say({ type: "pong" });
    first.onclose?.({ code: 1006 });
    expect(live.isOpen).toBe(true);
    expect(opened).toBe(2);
    expect(events).toEqual([]);
  });

  it("REL-1458: does the same where no answer comes to its ping", () => {
    newest().accept();
    newest().close = () => {};
    vi.advanceTimersByTime(35_000);
    expect(statuses.at(-1)).toBe("reconnecting");
    vi.advanceTimersByTime(1_000);
    expect(FakeSocket.made).toHaveLength(2);
  });

  it("says what it has read when it is asked, and bothers nobody with it", () => {
    newest().accept();
    newest().say({ type: "check", number: 7 });
    expect(newest().sent).toEqual(['{"type":"ack","number":7}']);
    expect(events).toEqual([]);
  });

  it("SEC-86: takes in nothing but its own closed set of events", () => {
    newest().accept();
    for (const frame of [
      "not json",
      "null",
      "[]",
      { type: "execute", code: "alert(1)" },
      { jsonrpc: "2.0", method: "tools/call" },
      { type: 7 },
    ]) {
      newest().say(frame);
    }
    expect(events).toEqual([]);
    newest().say({ type: "workspace.changed", kind: "bud.changed", id: "b" });
    expect(events).toHaveLength(1);
  });
});

describe("reconnectDelay", () => {
  it("spreads by a quarter to both sides", () => {
    expect(reconnectDelay(0, () => 0)).toBe(750);
    expect(reconnectDelay(2, () => 1)).toBe(5000);
    expect(reconnectDelay(99, () => 0.5)).toBe(16_000);
  });
});
