import { useState } from "preact/hooks";
import { changedResources, dropResource, picked, pickResource } from "../app";
import t from "../texts/chat";
import { Dialog } from "../ui/dialog";
import { Icon } from "../ui/icon";
import { clockTime } from "../ui/time";
import type { Attachment } from "../wire";
import { pickAgain } from "./attachments";
import { Result } from "./result";

/** What the next message takes along; each can be taken out again. */
export function PickedChips({ conversationId }: { conversationId: string }) {
  const list = picked.value[conversationId] ?? [];
  if (list.length === 0) return null;
  return (
    <ul class="chips" aria-label={t.attached}>
      {list.map((one) => (
        <li key={`${one.server_id} ${one.uri}`} class="chip" title={one.uri}>
          <Icon name="paperclip" />
          <span class="truncate">{one.title}</span>
          <span class="chip-from">{one.server_name}</span>
          <button
            type="button"
            class="chip-drop"
            aria-label={t.remove(one.title)}
            onClick={() => dropResource(conversationId, one)}
          >
            <Icon name="close" />
          </button>
        </li>
      ))}
    </ul>
  );
}

function hasChanged(attachment: Attachment): boolean {
  const { resource_id, read_at } = attachment;
  if (!resource_id || !read_at) return false;
  const told = changedResources.value[resource_id];
  const changed = Math.max(told ?? 0, attachment.changed_at ? Date.parse(attachment.changed_at) : 0);
  return changed > Date.parse(read_at);
}

function Chip({ attachment, conversationId }: { attachment: Attachment; conversationId: string }) {
  const [isOpen, setOpen] = useState(false);
  const title = attachment.title || attachment.uri;
  const isChanged = hasChanged(attachment);
  const word = { queued: t.reading, failed: t.notRead, ready: "" }[attachment.status];
  return (
    <li class="grid justify-items-end gap-1">
      <button
        type="button"
        class="chip"
        data-tone={attachment.status === "failed" ? "bad" : undefined}
        title={attachment.uri}
        onClick={() => setOpen(true)}
      >
        <Icon name={attachment.status === "queued" ? "loader" : "paperclip"} />
        <span class="truncate">{title}</span>
        <span class="chip-from">{attachment.server.name}</span>
        {word && <span class="chip-from">{word}</span>}
      </button>
      {attachment.error && <p class="field-error text-right">{attachment.error}</p>}
      {isChanged && (
        <p class="text-xs text-(--quiet)">
          {t.changedSince}{" "}
          <button
            type="button"
            class="link-brand"
            onClick={() => pickResource(conversationId, pickAgain(attachment))}
          >
            {t.readAgain}
          </button>
        </p>
      )}
      {isOpen && (
        <Dialog title={title} onClose={() => setOpen(false)}>
          <div class="grid gap-3 p-5 pt-3">
            <p class="text-xs text-(--quiet) break-all">
              {attachment.uri} · {attachment.server.name}
              {attachment.read_at && ` · ${t.readAt(clockTime(attachment.read_at))}`}
            </p>
            {attachment.status === "ready" ? (
              <Result
                content={attachment.content}
                truncated={false}
                origin={{ conversationId, server: attachment.server }}
              />
            ) : (
              <p class="text-sm">{attachment.error ?? t.notReadYet}</p>
            )}
          </div>
        </Dialog>
      )}
    </li>
  );
}

/** What a message took along, and how reading it went. */
export function AttachmentChips({
  attachments,
  conversationId,
}: {
  attachments: Attachment[];
  conversationId: string;
}) {
  if (attachments.length === 0) return null;
  return (
    <ul class="chips justify-end" aria-label={t.attached}>
      {attachments.map((attachment) => (
        <Chip key={attachment.id} attachment={attachment} conversationId={conversationId} />
      ))}
    </ul>
  );
}
