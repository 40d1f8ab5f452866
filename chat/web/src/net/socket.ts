/** The one WebSocket of the page: keeps itself connected, matches replies to commands, hands events on. */
import common from "../texts/common";
import type { Accepted, Command, Current, ServerEvent, Snapshot } from "../wire";
import { reconnectDelay } from "./backoff";
import { type PageEvent, parseEvent } from "./events";

export type SocketStatus =
  | "connecting"
  | "open"
  | "reconnecting"
  | "signed_out"
  | "forbidden"
  | "account_off"
  | "workspace_suspended"
  | "access_suspended"
  | "two_steps_needed"
  | "crowded"
  | "refused";

export class CommandError extends Error {
  constructor(
    readonly code: string,
    message: string,
    /** What is wrong with each field, where the server said so. */
    readonly fields: Readonly<Record<string, string[]>> = {},
  ) {
    super(message);
  }
}

/** What answers a command that was carried out. */
type Reply = Accepted | Snapshot | Current;

interface Waiting {
  resolve: (reply: Reply) => void;
  reject: (error: CommandError) => void;
  timer: ReturnType<typeof setTimeout>;
}

interface LiveSocketOptions {
  url: string;
  onEvent: (event: PageEvent) => void;
  onStatus: (status: SocketStatus) => void;
  /** Runs after every successful connection: subscribe again, send again what was not acknowledged. */
  onOpen: () => void;
  open?: (url: string) => WebSocket;
  random?: () => number;
  /** That a command may have: the server hangs up on larger ones. */
  most_bytes?: number;
}

const PING_EVERY_MS = 25_000;
const PONG_WITHIN_MS = 10_000;
const REPLY_WITHIN_MS = 20_000;

const FINAL: Record<number, SocketStatus> = {
  1008: "refused",
  4401: "signed_out",
  4403: "forbidden",
  4410: "account_off",
};
/** What may pass: the page asks again, calmly. */
const PASSING: Record<number, SocketStatus> = {
  4423: "workspace_suspended",
  4424: "access_suspended",
  4425: "two_steps_needed",
  4429: "crowded",
};
const PASSING_MS = 60_000;

export class LiveSocket {
  private socket: WebSocket | null = null;
  private attempt = 0;
  private counter = 0;
  private isClosed = false;
  /** The server turned the page away for now. Until it speaks again, nothing else is said of the connection. */
  private isAway = false;
  private waiting = new Map<string, Waiting>();
  private retryTimer: ReturnType<typeof setTimeout> | undefined;
  private pingTimer: ReturnType<typeof setInterval> | undefined;
  private pongTimer: ReturnType<typeof setTimeout> | undefined;

  constructor(private readonly options: LiveSocketOptions) {}

  start(): void {
    this.connect();
    globalThis.addEventListener?.("online", this.hurry);
    globalThis.addEventListener?.("offline", this.lost);
    globalThis.document?.addEventListener("visibilitychange", this.hurry);
  }

  stop(): void {
    this.isClosed = true;
    globalThis.removeEventListener?.("online", this.hurry);
    globalThis.removeEventListener?.("offline", this.lost);
    globalThis.document?.removeEventListener("visibilitychange", this.hurry);
    clearTimeout(this.retryTimer);
    this.quiet();
    this.socket?.close(1000);
    this.failAll("closed", common.pageLeft);
  }

  get isOpen(): boolean {
    return this.socket?.readyState === WebSocket.OPEN;
  }

  /** Send and forget; false when there is no connection to send it on. */
  tell(command: Command): boolean {
    return this.write(JSON.stringify(command));
  }

  private write(text: string): boolean {
    if (!this.isOpen) return false;
    this.socket?.send(text);
    return true;
  }

  private isTooLong(text: string): boolean {
    const most = this.options.most_bytes ?? Number.POSITIVE_INFINITY;
    return text.length * 3 > most && new TextEncoder().encode(text).length > most;
  }

  /** Send and wait for the server's word on it. */
  ask(command: Extract<Command, { type: "subscribe" }>): Promise<Snapshot | Current>;
  ask(command: Exclude<Command, { type: "subscribe" }>): Promise<Accepted>;
  ask(command: Command): Promise<Reply> {
    this.counter += 1;
    const ref = `r${this.counter}`;
    return new Promise((resolve, reject) => {
      const text = JSON.stringify({ ...command, ref });
      if (this.isTooLong(text)) {
        reject(new CommandError("too_long", common.tooLong));
        return;
      }
      if (!this.write(text)) {
        reject(new CommandError("offline", common.notConnected));
        return;
      }
      const timer = setTimeout(() => {
        this.waiting.delete(ref);
        reject(new CommandError("timeout", common.noReply));
      }, REPLY_WITHIN_MS);
      this.waiting.set(ref, { resolve, reject, timer });
    });
  }

  /** Try at once instead of waiting for the next step of the backoff. */
  hurry = (): void => {
    if (this.isClosed || this.socket || globalThis.document?.visibilityState === "hidden") return;
    clearTimeout(this.retryTimer);
    this.connect();
  };

  private lost = (): void => {
    if (this.socket) this.abandon(this.socket);
  };

  /** Count a connection as gone. Its own end can take a minute: the browser waits for the other side to close it too. */
  private abandon(socket: WebSocket): void {
    this.ended(socket);
    socket.close();
  }

  private connect(): void {
    if (this.isClosed || this.socket) return;
    if (!this.isAway) this.options.onStatus(this.attempt === 0 ? "connecting" : "reconnecting");
    const socket = (this.options.open ?? ((url) => new WebSocket(url)))(this.options.url);
    this.socket = socket;
    socket.onopen = () => {
      if (this.socket !== socket) return;
      this.pingTimer = setInterval(() => this.ping(), PING_EVERY_MS);
      // It opens for whoever is turned away, too.
      if (this.isAway) this.ping();
      else this.opened();
    };
    socket.onmessage = (message) => {
      if (this.socket !== socket) return;
      this.attempt = 0; // only a server that speaks counts as a success
      clearTimeout(this.pongTimer);
      if (this.isAway) this.opened();
      const event = parseEvent(message.data);
      if (event) this.take(event);
    };
    socket.onclose = (close) => this.ended(socket, close.code);
  }

  private opened(): void {
    this.isAway = false;
    this.options.onStatus("open");
    this.options.onOpen();
  }

  private ended(socket: WebSocket, code?: number): void {
    if (this.socket !== socket) return;
    this.socket = null;
    this.quiet();
    this.failAll("offline", common.connectionLost);
    const final = code === undefined ? undefined : FINAL[code];
    if (final) {
      this.isClosed = true;
      this.options.onStatus(final);
    } else if (!this.isClosed) {
      // After a lost connection, the server may count for a while what is gone.
      const passing = code === undefined ? undefined : PASSING[code];
      const random = this.options.random ?? Math.random;
      this.isAway = passing !== undefined;
      this.options.onStatus(passing ?? "reconnecting");
      this.retryTimer = setTimeout(
        () => this.connect(),
        passing ? PASSING_MS * (0.75 + random() / 2) : reconnectDelay(this.attempt, random),
      );
      if (!passing) this.attempt += 1;
    }
  }

  private take(event: ServerEvent): void {
    if (event.type === "check") {
      this.tell({ type: "ack", number: event.number });
      return;
    }
    const ref = "ref" in event ? event.ref : null;
    const waiting = ref ? this.waiting.get(ref) : undefined;
    if (ref && waiting) {
      clearTimeout(waiting.timer);
      this.waiting.delete(ref);
      if (event.type === "error") {
        waiting.reject(new CommandError(event.code, event.message, event.details));
        return;
      }
      waiting.resolve(event as Reply);
      if (event.type === "accepted") return;
    }
    this.options.onEvent(event);
  }

  private ping(): void {
    if (!this.tell({ type: "ping" })) return;
    clearTimeout(this.pongTimer);
    const socket = this.socket;
    this.pongTimer = setTimeout(() => socket && this.abandon(socket), PONG_WITHIN_MS);
  }

  private quiet(): void {
    clearInterval(this.pingTimer);
    clearTimeout(this.pongTimer);
  }

  private failAll(code: string, message: string): void {
    for (const waiting of this.waiting.values()) {
      clearTimeout(waiting.timer);
      waiting.reject(new CommandError(code, message));
    }
    this.waiting.clear();
  }
}
