import { useEffect, useLayoutEffect, useState } from "preact/hooks";
import { api, boot } from "../app/boot";
import { dropActionsAbout, messageOf, toast } from "../app/toasts";
import { ApiProblem } from "../net/api";
import { restoreConversation } from "../store/conversations";
import common from "../texts/common";
import t from "../texts/shell";
import { Dialog, DialogButtons } from "../ui/dialog";
import { Icon } from "../ui/icon";
import { toComposer } from "../ui/refocus";
import { ago } from "../ui/time";
import type { Conversation } from "../wire";

/** What was deleted and can be brought back. */
export function DeletedDialog({ onClose }: { onClose: () => void }) {
  const [rows, setRows] = useState<Conversation[] | null>(null);
  const [following, setFollowing] = useState<string | null>(null);
  const [problem, setProblem] = useState<string | null>(null);
  const [asked, setAsked] = useState<string | null>(null);
  const [erasesAll, setErasesAll] = useState(false);
  const [isBusy, setBusy] = useState(false);
  const load = async (page?: string) => {
    try {
      const found = await api.deletedConversations(page);
      setRows((before) => [...(before ?? []), ...found.results]);
      setFollowing(found.next);
      setProblem(null);
    } catch (error) {
      setProblem(messageOf(error));
    }
  };
  useEffect(() => void load(), []);
  const drop = (id: string) => {
    setRows((before) => (before ?? []).filter((row) => row.id !== id));
    // A way back that a note still offers would lead nowhere.
    dropActionsAbout([id]);
  };
  // Its button is gone with its row: whoever works by keys stays in the dialog.
  useLayoutEffect(() => {
    if (document.activeElement === document.body) toComposer();
  }, [rows?.length]);
  const restore = async (id: string) => {
    if (await restoreConversation(id)) drop(id);
  };
  const erase = async (id: string) => {
    if (asked !== id) {
      setAsked(id); // the second press is the answer to "really?"
      return;
    }
    try {
      await api.eraseConversation(id);
      drop(id);
    } catch (error) {
      if (error instanceof ApiProblem && error.status === 404) drop(id);
      else toast(messageOf(error), "bad");
    }
  };
  /** Page by page, whatever is shown of them. */
  const eraseAll = async () => {
    setBusy(true);
    try {
      for (;;) {
        const ids = (await api.deletedConversations()).results.map((row) => row.id);
        if (ids.length === 0) break;
        await api.bulk(ids, "erase");
        dropActionsAbout(ids);
      }
      toast(t.allErased, "ok");
    } catch (error) {
      toast(messageOf(error), "bad");
    }
    setBusy(false);
    setErasesAll(false);
    setRows([]);
    setFollowing(null);
    void load();
  };
  if (erasesAll)
    return (
      <Dialog key="all" title={t.eraseAllTitle} onClose={onClose}>
        <div class="grid gap-4 p-5 pt-3">
          <p>{t.eraseAllText}</p>
          <DialogButtons
            onCancel={() => setErasesAll(false)}
            label={t.reallyErase}
            onClick={() => void eraseAll()}
            isDestructive
            isBusy={isBusy}
          />
        </div>
      </Dialog>
    );
  return (
    <Dialog key="list" title={t.recentlyDeleted} onClose={onClose}>
      <div class="grid gap-3 p-5 pt-3" aria-busy={rows === null}>
        {problem && rows === null && <p class="text-sm">{problem}</p>}
        {rows === null && !problem && <p class="text-sm text-(--quiet)">{common.loading}</p>}
        {rows && (
          <p class="text-sm text-(--quiet)">
            {rows.length || following ? t.recentlyDeletedText(boot.deleted_days) : t.nothingDeleted}
          </p>
        )}
        <ul class="grid gap-1">
          {rows?.map((row) => {
            const title = row.title || common.newChat;
            return (
              <li key={row.id} class="deleted-row">
                <span aria-hidden="true">{row.bud.avatar || "🌱"}</span>
                <span class="min-w-0 grow">
                  <span class="block truncate" dir="auto">
                    {title}
                  </span>
                  <span class="block text-xs text-(--quiet)">
                    {t.deletedAt(ago(Date.now() - Date.parse(row.deleted_at ?? "")))}
                  </span>
                </span>
                <button
                  type="button"
                  class="btn btn-sm btn-outline-quiet"
                  aria-label={t.restoreOf(title)}
                  onClick={() => void restore(row.id)}
                >
                  <Icon name="archiveRestore" />
                  {t.restore}
                </button>
                <button
                  type="button"
                  class={`btn btn-sm ${asked === row.id ? "btn-error" : "btn-quiet"}`}
                  aria-label={asked === row.id ? t.reallyErase : t.eraseOf(title)}
                  onClick={() => void erase(row.id)}
                >
                  {asked === row.id ? t.reallyErase : t.erase}
                </button>
              </li>
            );
          })}
        </ul>
        {problem && rows !== null && (
          <p class="text-sm" role="alert">
            {problem}
          </p>
        )}
        {rows !== null && rows.length > 1 && (
          <div class="flex justify-end">
            <button type="button" class="btn btn-sm btn-quiet" onClick={() => setErasesAll(true)}>
              <Icon name="trash" />
              {t.eraseAll}
            </button>
          </div>
        )}
        {following && (
          <button type="button" class="btn btn-sm btn-quiet" onClick={() => void load(following)}>
            {t.showOlder}
          </button>
        )}
      </div>
    </Dialog>
  );
}
