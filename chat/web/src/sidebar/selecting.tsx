/** Several chats chosen in the list, and what can be done with all of them. */
import { useEffect, useState } from "preact/hooks";
import { api, boot } from "../app/boot";
import { dropActionsAbout, messageAlone, toast, UNDO_MS } from "../app/toasts";
import { forget, whileDeleting } from "../store/conversations";
import { list, placeInList, showsArchived } from "../store/list";
import common from "../texts/common";
import t from "../texts/folders";
import shell from "../texts/shell";
import { Icon } from "../ui/icon";
import { askWhere } from "./folders";
import { selected, stopSelecting } from "./moving";

const MOST = 100;

export function select(id: string): void {
  const ids = new Set(selected.value);
  if (!ids.delete(id)) {
    if (ids.size >= MOST) return toast(t.mostSelected(MOST), "info");
    ids.add(id);
  }
  selected.value = ids;
}

const WAY_BACK = { archive: "unarchive", unarchive: "archive", delete: "restore" } as const;

async function change(ids: string[], what: keyof typeof WAY_BACK | "restore"): Promise<boolean> {
  try {
    const work = () => api.bulk(ids, what);
    const rows = await (what === "delete" ? whileDeleting(ids, work) : work());
    if (what === "delete") ids.forEach(forget);
    else rows.forEach(placeInList);
    return true;
  } catch (error) {
    toast(messageAlone(error), "bad");
    return false;
  }
}

async function changeSelected(what: keyof typeof WAY_BACK): Promise<void> {
  const ids = [...(selected.value ?? [])];
  if (ids.length === 0 || !(await change(ids, what))) return;
  stopSelecting();
  if (what === "delete") dropActionsAbout(ids);
  if (what === "delete" && boot.deleted_days === 0) return toast(shell.erased, "ok");
  const run = () => void change(ids, WAY_BACK[what]);
  toast(t.done[what](ids.length), "ok", { label: shell.undo, run, about: ids }, UNDO_MS);
}

export function SelectionBar() {
  const ids = selected.value;
  /** Asked whether they shall go for good, which chats it were. */
  const [asked, setAsked] = useState<ReadonlySet<string> | null>(null);
  useEffect(() => {
    if (!ids) return;
    const stop = (event: KeyboardEvent) => {
      if (event.key === "Escape" && !document.querySelector("dialog[open]")) stopSelecting();
    };
    addEventListener("keydown", stop);
    return () => removeEventListener("keydown", stop);
  }, [ids !== null]);
  if (!ids) return null;
  const isEmpty = ids.size === 0;
  const isArchive = showsArchived.value;
  const shown = (list.value ?? []).slice(0, MOST).map((row) => row.id);
  return (
    <div class="selection-bar" role="toolbar" aria-label={t.selection}>
      <span class="grow" aria-live="polite">
        {t.selected(ids.size)}
      </span>
      <button
        type="button"
        class="btn btn-xs btn-quiet"
        onClick={() => {
          selected.value = new Set(shown);
        }}
      >
        {t.all}
      </button>
      <button type="button" class="btn btn-xs btn-quiet" onClick={stopSelecting}>
        {common.cancel}
      </button>
      <div class="selection-tools">
        <button
          type="button"
          class="btn btn-xs btn-outline-quiet"
          disabled={isEmpty}
          onClick={() => void changeSelected(isArchive ? "unarchive" : "archive")}
        >
          <Icon name={isArchive ? "archiveRestore" : "archive"} />
          {isArchive ? shell.unarchive : shell.archive}
        </button>
        <button
          type="button"
          class="btn btn-xs btn-outline-quiet"
          disabled={isEmpty}
          onClick={() => askWhere((list.value ?? []).filter((row) => ids.has(row.id)))}
        >
          <Icon name="folder" />
          {t.move}
        </button>
        <button
          type="button"
          class="btn btn-xs btn-outline-quiet"
          disabled={isEmpty}
          onClick={() => {
            if (boot.deleted_days === 0 && asked !== ids) setAsked(ids);
            else void changeSelected("delete");
          }}
        >
          <Icon name="trash" />
          {asked === ids ? shell.reallyErase : shell.delete}
        </button>
      </div>
    </div>
  );
}
