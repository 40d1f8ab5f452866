import { useEffect, useState } from "preact/hooks";
import { api, boot, conversationPath, messageOf, toast } from "../app";
import { Dialog } from "../ui/dialog";
import { Icon } from "../ui/icon";
import { clockTime } from "../ui/time";
import type { ToolPermission } from "../wire";

function Row({ row, onForget }: { row: ToolPermission; onForget: () => void }) {
  const title = row.tool.title || row.tool.name;
  return (
    <li class="server-row flex items-start gap-3">
      <div class="min-w-0 grow">
        <p class="break-words">
          <span class="font-medium">{title}</span>{" "}
          <span class="text-sm text-(--quiet)">of {row.server.name}</span>
        </p>
        <p class="text-xs text-(--quiet) break-words">
          {row.conversation ? (
            <>
              in{" "}
              <a class="link-quiet" href={conversationPath(row.conversation.id)}>
                {row.conversation.title || "a chat"}
              </a>
            </>
          ) : (
            "in all your chats"
          )}{" "}
          · since {clockTime(row.created_at)}
        </p>
        {!row.is_current && (
          <p class="field-warning">
            <Icon name="alert" /> {row.reason}
          </p>
        )}
      </div>
      <button
        type="button"
        class="btn btn-sm btn-outline-quiet"
        aria-label={`Revoke: ${title} of ${row.server.name}`}
        onClick={onForget}
      >
        Revoke
      </button>
    </li>
  );
}

/** What this person allowed once and for all; each can be taken back. */
export function PermissionsDialog({ onClose }: { onClose: () => void }) {
  const [rows, setRows] = useState<ToolPermission[] | null>(null);
  const [problem, setProblem] = useState<string | null>(null);
  useEffect(() => {
    api.permissions().then(setRows, (error) => setProblem(messageOf(error)));
  }, []);
  const forget = async (row: ToolPermission) => {
    try {
      await api.forgetPermission(row.id);
      setRows((rows ?? []).filter((other) => other.id !== row.id));
      toast("Taken back. It asks again.", "ok");
    } catch (error) {
      toast(messageOf(error), "bad");
    }
  };
  return (
    <Dialog title="My tool permissions" onClose={onClose}>
      <div class="grid gap-3 p-5 pt-3" aria-busy={rows === null && problem === null}>
        <p class="text-sm text-(--quiet)">
          These tools run for you without asking. Trellis asks again when a tool changes, and what an
          administrator has blocked stays blocked.
        </p>
        {problem && (
          <p class="notice" data-tone="bad">
            <Icon name="alert" />
            <span>{problem}</span>
          </p>
        )}
        {rows?.length === 0 && (
          <p class="text-sm">
            {boot.remembers_permissions
              ? "None yet: every tool that changes something asks you."
              : "This workspace does not remember permissions: tools ask each time."}
          </p>
        )}
        {rows && rows.length > 0 && (
          <ul class="pick-list">
            {rows.map((row) => (
              <Row key={row.id} row={row} onForget={() => forget(row)} />
            ))}
          </ul>
        )}
      </div>
    </Dialog>
  );
}
