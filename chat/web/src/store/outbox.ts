/**
 * Messages that the server has not confirmed, kept in this browser: a reload, another chat or a lost connection loses none
 * of them. They are sent again under their own ids, which store nothing twice.
 */
import type { ConversationChoice } from "../net/api";
import type { WhenBusy } from "../wire";
import type { Outgoing } from "./conversation";

export interface Unsent extends Outgoing {
  conversation_id: string;
  when_busy: WhenBusy;
  /** The chat that it is to begin: it has no id yet. */
  begins?: Beginning;
}

/** Where the bud is null, the first one of the workspace answers. */
export interface Beginning {
  bud_id: string | null;
  choice: Partial<ConversationChoice>;
}

/** The conversation of messages that begin one. */
export const NEW = "";

/** Where they are kept; a browser that keeps nothing forgets them with the page. */
export interface Place {
  getItem(key: string): string | null;
  setItem(key: string, value: string): void;
}

const MOST = 50;
const LONGEST_MS = 7 * 24 * 3600 * 1000;

export class Outbox {
  private rows: Unsent[] = [];
  /** The browser takes nothing more: what it has is older than what this page knows. */
  private isFull = false;

  constructor(
    private readonly key: string,
    private readonly place: Place,
    private readonly now: () => number = Date.now,
  ) {}

  /** All that may still be sent, the oldest first; also what another tab has left. */
  read(): readonly Unsent[] {
    if (this.isFull) return this.rows;
    try {
      const kept: unknown = JSON.parse(this.place.getItem(this.key) ?? "[]");
      if (Array.isArray(kept)) this.rows = kept.filter((row) => this.isUsable(row));
    } catch {
      // What this page knows is there.
    }
    return this.rows;
  }

  of(conversationId: string): Unsent[] {
    return this.read().filter((row) => row.conversation_id === conversationId);
  }

  keep(row: Unsent): void {
    const others = this.read().filter((one) => one.client_id !== row.client_id);
    this.write([...others, row].slice(-MOST));
  }

  /** The server refused it, or is asked again (null). */
  mark(clientId: string, error: string | null): void {
    this.write(this.read().map((row) => (row.client_id === clientId ? { ...row, error } : row)));
  }

  drop(clientId: string): void {
    this.write(this.read().filter((row) => row.client_id !== clientId));
  }

  private write(rows: Unsent[]): void {
    this.rows = rows;
    try {
      this.place.setItem(this.key, JSON.stringify(rows));
      this.isFull = false;
    } catch {
      this.isFull = true; // costs them on reload, nothing more
    }
  }

  private isUsable(row: Unsent): boolean {
    const isWhole = [row?.client_id, row?.conversation_id, row?.text, row?.sent_at].every(
      (value) => typeof value === "string",
    );
    return isWhole && this.now() - Date.parse(row.sent_at) < LONGEST_MS;
  }
}
