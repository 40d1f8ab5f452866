/** Which chat the dialog shares, and the values of its form. */
import { signal } from "@preact/signals";
import { momentOf, typed } from "../formats";
import type { ShareChoice } from "../net/api";
import type { Conversation, Person, Share } from "../wire";

export interface Sharing {
  row: Conversation;
  /** The message that the shared text ends with; absent: the end of what the chat shows. */
  until?: string;
}

/** What the dialog is open for. */
export const sharing = signal<Sharing | null>(null);

export interface ShareForm {
  audience: Share["audience"];
  people: readonly Person[];
  withFiles: boolean;
  withCalls: boolean;
  /** A day, as the field has it; empty: no end. */
  ends: string;
}

/** What the form begins with: how the chat is shared, or the least that can be shared. */
export function formOf(share: Share | null): ShareForm {
  return {
    audience: share?.audience ?? "people",
    people: share?.people ?? [],
    withFiles: share?.with_files ?? false,
    withCalls: share?.with_calls ?? false,
    ends: share?.expires_at ? typed(share.expires_at).slice(0, 10) : "",
  };
}

/** What is sent. The day of its end counts to its last minute. */
export function choiceOf(form: ShareForm, until: string | null): ShareChoice {
  return {
    audience: form.audience,
    people: form.audience === "people" ? form.people.map((person) => person.id) : [],
    with_files: form.withFiles,
    with_calls: form.withCalls,
    expires_at: form.ends ? momentOf(`${form.ends}T23:59`).toISOString() : null,
    until_message_id: until,
  };
}

/** Whether two forms would share the same with the same people. */
export function isSameForm(one: ShareForm, other: ShareForm): boolean {
  return JSON.stringify(choiceOf(one, null)) === JSON.stringify(choiceOf(other, null));
}
