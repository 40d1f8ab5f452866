import { signal } from "@preact/signals";
import { useRef, useState } from "preact/hooks";
import { boot } from "../app/boot";
import { conversationPath, go, place, printPath } from "../app/place";
import { downloadConversation } from "../store/commands";
import { changeConversation, deleteConversation } from "../store/conversations";
import { unsent } from "../store/draft";
import { openFolder } from "../store/list";
import { sharing } from "../store/sharing";
import { keepChat } from "../store/temporary";
import common from "../texts/common";
import folderTexts from "../texts/folders";
import { filled } from "../texts/language";
import sharingTexts from "../texts/sharing";
import t from "../texts/shell";
import { Dialog, DialogButtons } from "../ui/dialog";
import { Icon } from "../ui/icon";
import { Menu, MenuButton, MenuLink } from "../ui/menu";
import { waitingForOthers } from "../waiting/state";
import type { Conversation } from "../wire";
import { askWhere, Dot, folders } from "./folders";
import { dragsChat, selected } from "./moving";
import { select } from "./selecting";

type Task = { kind: "rename" | "delete"; row: Conversation };
export const task = signal<Task | null>(null);

export function ConversationMenu({ row, isQuiet = false }: { row: Conversation; isQuiet?: boolean }) {
  return (
    <Menu
      label={t.moreFor(row.title || t.untitled)}
      buttonClass={isQuiet ? "chat-row-more" : "btn btn-sm btn-square btn-quiet"}
      button={<Icon name="ellipsis" />}
      align="end"
    >
      {row.is_temporary ? (
        <MenuButton icon="check" onClick={() => keepChat(row.id)}>
          {t.keep}
        </MenuButton>
      ) : (
        <MenuButton
          icon={row.is_pinned ? "pinOff" : "pin"}
          onClick={() => changeConversation(row.id, { is_pinned: !row.is_pinned })}
        >
          {row.is_pinned ? t.unpin : t.pin}
        </MenuButton>
      )}
      <MenuButton icon="pencil" onClick={() => setTask({ kind: "rename", row })}>
        {t.rename}
      </MenuButton>
      {!row.is_temporary && (
        <>
          <MenuButton
            icon={row.is_archived ? "archiveRestore" : "archive"}
            onClick={() => changeConversation(row.id, { is_archived: !row.is_archived })}
          >
            {row.is_archived ? t.unarchive : t.archive}
          </MenuButton>
          <MenuButton icon="folder" onClick={() => askWhere([row])}>
            {folderTexts.moveOne}
          </MenuButton>
        </>
      )}
      {isQuiet && (
        <MenuButton icon="listChecks" onClick={() => select(row.id)}>
          {folderTexts.select}
        </MenuButton>
      )}
      <MenuButton
        icon="share"
        onClick={() => {
          sharing.value = { row };
        }}
      >
        {sharingTexts.shareMenu}
      </MenuButton>
      <MenuButton icon="download" onClick={() => downloadConversation(row.id, "md")}>
        {t.download}
      </MenuButton>
      <MenuButton icon="download" onClick={() => downloadConversation(row.id, "json")}>
        {t.downloadJson}
      </MenuButton>
      <MenuLink icon="printer" href={printPath(row.id)}>
        {t.print}
      </MenuLink>
      <div class="menu-line" />
      <MenuButton icon="trash" tone="bad" onClick={() => setTask({ kind: "delete", row })}>
        {t.delete}
      </MenuButton>
    </Menu>
  );
}

function setTask(next: Task): void {
  task.value = next;
}

export function ConversationRow({ row }: { row: Conversation }) {
  const isHere = place.value === row.id;
  const isNew = row.unseen_answer_at !== null && !isHere;
  const folder = openFolder.value ? undefined : folders.value.find((one) => one.id === row.folder_id);
  if (selected.value) {
    const title = row.title || common.newChat;
    return (
      <li class="chat-row">
        <label class="chat-row-link">
          <input
            type="checkbox"
            aria-label={folderTexts.selectChat(title)}
            checked={selected.value.has(row.id)}
            onChange={() => select(row.id)}
          />
          <span class="truncate grow" dir="auto">
            {title}
          </span>
        </label>
      </li>
    );
  }
  return (
    <li class="chat-row" data-here={isHere} data-new={isNew}>
      <a
        class="chat-row-link"
        href={conversationPath(row.id)}
        aria-current={isHere ? "page" : undefined}
        {...dragsChat(row)}
        onClick={(event) => {
          if (event.metaKey || event.ctrlKey || event.shiftKey) return;
          event.preventDefault();
          go(conversationPath(row.id));
        }}
      >
        {folder && <Dot colour={folder.colour} />}
        <span class="truncate grow" dir="auto" title={row.title}>
          {row.title || common.newChat}
        </span>
        {!isHere && unsent.value.has(row.id) && (
          <span class="chat-row-unsent" role="img" aria-label={t.unsent} title={t.unsent}>
            <Icon name="pencil" />
          </span>
        )}
        {row.status === "running" && (
          <span class="dot" data-tone="brand" data-pulse role="img" aria-label={t.answering} />
        )}
        {row.status === "idle" && isNew && (
          <span class="dot" data-tone="brand" role="img" aria-label={t.newAnswer} title={t.newAnswer} />
        )}
        {row.status === "waiting" &&
          (waitingForOthers.value.has(row.id) ? (
            <span class="tag">{t.needsAdmin}</span>
          ) : (
            <span class="tag" data-tone="warn">
              {t.needsYou}
            </span>
          ))}
      </a>
      <ConversationMenu row={row} isQuiet />
    </li>
  );
}

function RenameDialog({ row, onClose }: { row: Conversation; onClose: () => void }) {
  const input = useRef<HTMLInputElement>(null);
  const [isBusy, setBusy] = useState(false);
  return (
    <Dialog title={t.renameTitle} onClose={onClose}>
      <form
        class="grid gap-4 p-5 pt-3"
        onSubmit={async (event) => {
          event.preventDefault();
          const title = input.current?.value.trim();
          if (!title || title === row.title) return onClose();
          setBusy(true);
          // Where it could not be kept it stays here, to be kept later.
          if (await changeConversation(row.id, { title })) onClose();
          else setBusy(false);
        }}
      >
        <div class="field">
          <label for="rename-title">{t.title}</label>
          <input
            ref={input}
            id="rename-title"
            dir="auto"
            defaultValue={row.title}
            maxLength={200}
            required
            autofocus
          />
        </div>
        <DialogButtons onCancel={onClose} label={common.save} isBusy={isBusy} />
      </form>
    </Dialog>
  );
}

function DeleteDialog({ row, onClose }: { row: Conversation; onClose: () => void }) {
  return (
    <Dialog title={t.deleteTitle} onClose={onClose}>
      <div class="grid gap-4 p-5 pt-3">
        <p>
          {filled(t.deleteText(row.is_temporary ? 0 : boot.deleted_days), {
            title: <strong class="break-words">{row.title || common.newChat}</strong>,
          })}
        </p>
        <DialogButtons
          onCancel={onClose}
          label={t.delete}
          onClick={() => {
            onClose();
            void deleteConversation(row);
          }}
          isDestructive
        />
      </div>
    </Dialog>
  );
}

/** The dialog that a conversation's menu asked for. */
export function ConversationDialogs() {
  if (!task.value) return null;
  const { kind, row } = task.value;
  const close = () => {
    task.value = null;
  };
  return kind === "rename" ? (
    <RenameDialog row={row} onClose={close} />
  ) : (
    <DeleteDialog row={row} onClose={close} />
  );
}
