/** Folders: one level, each with a colour. A click lists what is in one. The menu of a chat moves it, and so does dragging it here. */
import { signal } from "@preact/signals";
import { useRef, useState } from "preact/hooks";
import { api, boot } from "../app/boot";
import { hearOfChanges, hearOfReturn } from "../app/connection";
import { messageAt, messageOf, toast } from "../app/toasts";
import type { FolderColour } from "../net/api";
import { readAgain } from "../net/reading-again";
import { list, loadList, openFolder, setOpenFolder } from "../store/list";
import common from "../texts/common";
import t from "../texts/folders";
import shell from "../texts/shell";
import { Dialog, DialogButtons } from "../ui/dialog";
import { Icon } from "../ui/icon";
import { Menu, MenuButton } from "../ui/menu";
import type { Conversation, Folder } from "../wire";
import { isTakingOut, move, takesChat } from "./moving";

const COLOURS = ["green", "blue", "yellow", "red", "purple", "teal", "lime", "pink"] as const;

export const folders = signal<Folder[]>([]);

let request = 0;

export async function loadFolders(): Promise<void> {
  request += 1;
  const mine = request;
  try {
    const found = await api.folders();
    if (mine !== request) return;
    folders.value = found;
    leaveDeleted();
  } catch {
    // The list of chats says what is wrong with the connection.
  }
}

/** Show nothing of a folder that has gone: it may be the open one, or that of chats in the list. */
function leaveDeleted(): void {
  const isThere = (id: string | null) => id === null || folders.value.some((one) => one.id === id);
  if (!isThere(openFolder.value)) setOpenFolder(null);
  else if (list.value && !list.value.every((row) => isThere(row.folder_id))) void loadList();
}

/** At once, and whenever they change on another device or in another tab. */
export function followFolders(): void {
  hearOfChanges((kind) => {
    if (kind === "folder.changed" || kind === "import.changed")
      readAgain("folders", loadFolders, { isOwn: true });
  });
  hearOfReturn(() => void loadFolders());
  if (!boot.is_kept) void loadFolders();
}

const byName = (a: Folder, b: Folder): number => a.name.localeCompare(b.name);

function place(folder: Folder): void {
  folders.value = [...folders.value.filter((one) => one.id !== folder.id), folder].sort(byName);
}

type Wanted =
  | { kind: "new" }
  | { kind: "change" | "delete"; folder: Folder }
  | { kind: "move"; rows: Conversation[] };
const wanted = signal<Wanted | null>(null);

export function askWhere(rows: Conversation[]): void {
  wanted.value = { kind: "move", rows };
}

export function Dot({ colour }: { colour: FolderColour }) {
  return <span class="folder-dot" data-colour={colour} aria-hidden="true" />;
}

export function FolderList() {
  return (
    <section aria-label={t.folders}>
      <div class="folders-head">
        <h2 class="sidebar-heading">{t.folders}</h2>
        <button
          type="button"
          class="btn btn-xs btn-square btn-quiet"
          aria-label={t.newFolder}
          title={t.newFolder}
          onClick={() => {
            wanted.value = { kind: "new" };
          }}
        >
          <Icon name="plus" />
        </button>
      </div>
      <ul>
        {folders.value.map((folder) => (
          <li
            key={folder.id}
            class="chat-row"
            data-here={openFolder.value === folder.id}
            {...takesChat(folder.id)}
          >
            <button
              type="button"
              class="chat-row-link"
              aria-pressed={openFolder.value === folder.id}
              onClick={() => setOpenFolder(openFolder.value === folder.id ? null : folder.id)}
            >
              <Dot colour={folder.colour} />
              <span class="truncate grow text-left" title={folder.name}>
                {folder.name}
              </span>
            </button>
            <Menu
              label={shell.moreFor(folder.name)}
              buttonClass="chat-row-more"
              button={<Icon name="ellipsis" />}
              align="end"
            >
              <MenuButton
                icon="pencil"
                onClick={() => {
                  wanted.value = { kind: "change", folder };
                }}
              >
                {t.change}
              </MenuButton>
              <MenuButton
                icon="trash"
                tone="bad"
                onClick={() => {
                  wanted.value = { kind: "delete", folder };
                }}
              >
                {shell.delete}
              </MenuButton>
            </Menu>
          </li>
        ))}
        {isTakingOut.value && (
          <li class="chat-row" {...takesChat(null)}>
            <span class="chat-row-link">
              <Icon name="close" />
              {t.noFolder}
            </span>
          </li>
        )}
      </ul>
    </section>
  );
}

export function FolderDialogs() {
  const task = wanted.value;
  const close = () => {
    wanted.value = null;
  };
  if (!task) return null;
  if (task.kind === "move") return <MoveDialog rows={task.rows} onClose={close} />;
  if (task.kind === "delete") return <DeleteDialog folder={task.folder} onClose={close} />;
  return <FolderDialog folder={task.kind === "change" ? task.folder : undefined} onClose={close} />;
}

function Colours({ value, onChange }: { value: FolderColour; onChange: (colour: FolderColour) => void }) {
  return (
    <fieldset class="folder-colours">
      <legend>{t.colour}</legend>
      {COLOURS.map((colour) => (
        <label key={colour} title={t.colours[colour]}>
          <input
            type="radio"
            name="folder-colour"
            class="sr-only"
            checked={value === colour}
            onChange={() => onChange(colour)}
          />
          <Dot colour={colour} />
          <span class="sr-only">{t.colours[colour]}</span>
        </label>
      ))}
    </fieldset>
  );
}

function FolderDialog({ folder, onClose }: { folder: Folder | undefined; onClose: () => void }) {
  const input = useRef<HTMLInputElement>(null);
  const [colour, setColour] = useState<FolderColour>(folder?.colour ?? "green");
  const [problem, setProblem] = useState("");
  const save = async () => {
    const name = input.current?.value.trim() ?? "";
    if (!name) return;
    try {
      place(await (folder ? api.changeFolder(folder.id, { name, colour }) : api.createFolder(name, colour)));
      onClose();
    } catch (error) {
      setProblem(messageAt("name", error));
    }
  };
  return (
    <Dialog title={folder ? t.changeFolder : t.newFolder} onClose={onClose}>
      <form
        class="grid gap-4 p-5 pt-3"
        onSubmit={(event) => {
          event.preventDefault();
          void save();
        }}
      >
        <div class="field">
          <label for="folder-name">{t.name}</label>
          <input
            ref={input}
            id="folder-name"
            defaultValue={folder?.name ?? ""}
            maxLength={60}
            required
            autofocus
            aria-invalid={problem ? true : undefined}
            aria-describedby="folder-problem"
          />
          {problem && (
            <p id="folder-problem" class="field-error" role="alert">
              {problem}
            </p>
          )}
        </div>
        <Colours value={colour} onChange={setColour} />
        <DialogButtons onCancel={onClose} label={common.save} />
      </form>
    </Dialog>
  );
}

function DeleteDialog({ folder, onClose }: { folder: Folder; onClose: () => void }) {
  const remove = async () => {
    onClose();
    try {
      await api.deleteFolder(folder.id);
      folders.value = folders.value.filter((one) => one.id !== folder.id);
      if (openFolder.value === folder.id) setOpenFolder(null);
      else void loadList();
    } catch (error) {
      toast(messageOf(error), "bad");
    }
  };
  return (
    <Dialog title={t.deleteTitle} onClose={onClose}>
      <div class="grid gap-4 p-5 pt-3">
        <p class="break-words">{t.deleteText(folder.name)}</p>
        <DialogButtons onCancel={onClose} label={shell.delete} onClick={() => void remove()} isDestructive />
      </div>
    </Dialog>
  );
}

function MoveDialog({ rows, onClose }: { rows: Conversation[]; onClose: () => void }) {
  const [name, setName] = useState("");
  const [problem, setProblem] = useState("");
  const go = (folderId: string | null) => {
    onClose();
    void move(rows, folderId);
  };
  const make = async () => {
    try {
      const folder = await api.createFolder(
        name.trim(),
        COLOURS[folders.value.length % COLOURS.length] ?? "green",
      );
      place(folder);
      go(folder.id);
    } catch (error) {
      setProblem(messageAt("name", error));
    }
  };
  const isIn = rows.some((row) => row.folder_id !== null);
  return (
    <Dialog title={t.moveTitle(rows.length)} onClose={onClose}>
      <div class="grid gap-3 p-5 pt-3">
        <ul class="grid gap-1">
          {folders.value.map((folder) => (
            <li key={folder.id}>
              <button type="button" class="menu-item" onClick={() => go(folder.id)}>
                <Dot colour={folder.colour} />
                <span class="grow truncate">{folder.name}</span>
              </button>
            </li>
          ))}
          {isIn && (
            <li>
              <button type="button" class="menu-item" onClick={() => go(null)}>
                <Icon name="close" />
                <span class="grow">{t.noFolder}</span>
              </button>
            </li>
          )}
        </ul>
        <form
          class="flex flex-wrap items-end gap-2"
          onSubmit={(event) => {
            event.preventDefault();
            if (name.trim()) void make();
          }}
        >
          <div class="field grow">
            <label for="folder-new">{t.newFolder}</label>
            <input
              id="folder-new"
              maxLength={60}
              value={name}
              onInput={(event) => setName(event.currentTarget.value)}
              aria-invalid={problem ? true : undefined}
              aria-describedby="folder-problem"
            />
            {problem && (
              <p id="folder-problem" class="field-error" role="alert">
                {problem}
              </p>
            )}
          </div>
          <button type="submit" class="btn btn-primary" disabled={!name.trim()}>
            {t.makeAndMove}
          </button>
        </form>
      </div>
    </Dialog>
  );
}
