import { useEffect, useState } from "preact/hooks";
import { api, boot, conversationPath, messageOf, toast } from "../app";
import { filled } from "../texts/language";
import t from "../texts/shell";
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
          <span class="text-sm text-(--quiet)">{t.ofServer(row.server.name)}</span>
        </p>
        <p class="text-xs text-(--quiet) break-words">
          {row.conversation
            ? filled(t.inChat, {
                chat: (
                  <a class="link-quiet" href={conversationPath(row.conversation.id)}>
                    {row.conversation.title || t.aChat}
                  </a>
                ),
                time: clockTime(row.created_at),
              })
            : t.inAllChats(clockTime(row.created_at))}
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
        aria-label={t.revokeTool(title, row.server.name)}
        onClick={onForget}
      >
        {t.revoke}
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
      toast(t.revoked, "ok");
    } catch (error) {
      toast(messageOf(error), "bad");
    }
  };
  return (
    <Dialog title={t.permissions} onClose={onClose}>
      <div class="grid gap-3 p-5 pt-3" aria-busy={rows === null && problem === null}>
        <p class="text-sm text-(--quiet)">{t.permissionsAbout}</p>
        {problem && (
          <p class="notice" data-tone="bad">
            <Icon name="alert" />
            <span>{problem}</span>
          </p>
        )}
        {rows?.length === 0 && (
          <p class="text-sm">{boot.remembers_permissions ? t.noPermissions : t.permissionsOff}</p>
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
