import { useEffect, useRef, useState } from "preact/hooks";
import { boot } from "../app/boot";
import { later } from "../app/later";
import { isSidebarOpen } from "../app/place";
import { openLayer } from "../browser/layers";
import {
  list,
  listNext,
  listProblem,
  loadList,
  loadMore,
  openFolder,
  setShowsArchived,
  showsArchived,
} from "../store/list";
import common from "../texts/common";
import folderTexts from "../texts/folders";
import t from "../texts/shell";
import { Icon } from "../ui/icon";
import { useNow } from "../ui/time";
import { UserMenu, WorkspaceSwitcher } from "./account";
import { Bell } from "./bell";
import { FolderDialogs, FolderList } from "./folders";
import { groupByDay } from "./groups";
import { toggleSidebar } from "./hiding";
import { isSearchOpen, newChat } from "./opening";
import { ConversationRow } from "./row";
import { SelectionBar } from "./selecting";

const DeletedDialog = later(() => import("./deleted").then((module) => module.DeletedDialog));

function ConversationList() {
  const now = useNow(60_000);
  const rows = list.value;
  if (boot.is_kept) return <p class="sidebar-note">{t.chatsAway}</p>;
  if (listProblem.value && !rows) {
    return (
      <div class="sidebar-note">
        <p>{listProblem.value}</p>
        <button type="button" class="btn btn-sm btn-outline-quiet" onClick={() => loadList()}>
          {common.tryAgain}
        </button>
      </div>
    );
  }
  if (!rows) {
    return (
      <div class="grid gap-4 p-3" aria-busy="true">
        <span class="sr-only">{t.loadingChats}</span>
        {["w-4/5", "w-3/5", "w-11/12", "w-2/3"].map((width) => (
          <div key={width} class={`skeleton-line ${width}`} />
        ))}
      </div>
    );
  }
  if (rows.length === 0) {
    const text = openFolder.value ? folderTexts.folderEmpty : t.chatsEmpty;
    return <p class="sidebar-note">{showsArchived.value ? t.archiveEmpty : text}</p>;
  }
  return (
    <>
      {groupByDay(rows, now).map((group) => (
        <section key={group.heading} aria-label={group.heading}>
          <h2 class="sidebar-heading">{group.heading}</h2>
          <ul>
            {group.rows.map((row) => (
              <ConversationRow key={row.id} row={row} />
            ))}
          </ul>
        </section>
      ))}
      {listNext.value && (
        <button type="button" class="btn btn-sm btn-quiet w-full mt-2" onClick={() => loadMore()}>
          {t.showOlder}
        </button>
      )}
    </>
  );
}

export function Sidebar() {
  const wasOpen = useRef(false);
  const [showsDeleted, setShowsDeleted] = useState(false);
  useEffect(() => {
    // On a narrow screen the sidebar lies over the page: the focus goes in with it, and back to its button.
    if (isSidebarOpen.value) document.querySelector<HTMLElement>("#sidebar :is(a[href], button)")?.focus();
    else if (wasOpen.current) {
      document.querySelector<HTMLElement>("[aria-controls=sidebar]")?.focus();
    }
    wasOpen.current = isSidebarOpen.value;
    if (!isSidebarOpen.value) return;
    // Wherever the focus is: where a dialog closes it comes back a moment later.
    const close = (event: KeyboardEvent) => {
      // A dialog or menu is what it closes, alone.
      if (event.key !== "Escape" || document.querySelector("dialog[open], :popover-open")) return;
      isSidebarOpen.value = false;
    };
    document.addEventListener("keydown", close);
    const closed = openLayer(() => {
      isSidebarOpen.value = false;
    });
    return () => {
      closed();
      document.removeEventListener("keydown", close);
    };
  }, [isSidebarOpen.value]);
  return (
    <>
      {isSidebarOpen.value && (
        <button
          type="button"
          class="sidebar-veil"
          aria-label={t.closeSidebar}
          onClick={() => {
            isSidebarOpen.value = false;
          }}
        />
      )}
      <nav id="sidebar" class="sidebar" data-open={isSidebarOpen.value} aria-label={t.chats}>
        <div class="sidebar-head">
          <div class="sidebar-top">
            <WorkspaceSwitcher />
            <button
              type="button"
              class="btn btn-sm btn-square btn-quiet max-[52rem]:hidden"
              aria-label={t.hideSidebar}
              title={t.hideSidebar}
              onClick={toggleSidebar}
            >
              <Icon name="panelLeft" />
            </button>
          </div>
          <button type="button" class="btn btn-primary btn-wide-row mt-2" onClick={() => newChat()}>
            <Icon name="compose" />
            {common.newChat}
          </button>
          <button
            type="button"
            class="btn btn-quiet btn-wide-row"
            onClick={() => {
              isSearchOpen.value = true;
            }}
          >
            <Icon name="search" />
            {common.search}
          </button>
          <a class="btn btn-quiet btn-wide-row" href={boot.urls.servers}>
            <Icon name="plug" />
            {t.servers}
          </a>
          {boot.urls.audit && (
            <a class="btn btn-quiet btn-wide-row" href={boot.urls.audit}>
              <Icon name="audit" />
              {t.audit}
            </a>
          )}
          {boot.urls.admin && (
            <a class="btn btn-quiet btn-wide-row" href={boot.urls.admin}>
              <Icon name="settings" />
              {t.admin}
            </a>
          )}
          <Bell />
        </div>
        <div class="sidebar-list">
          {showsArchived.value && (
            <div class="archive-head">
              <h2>{t.archiveTitle}</h2>
              <button type="button" class="btn btn-xs btn-quiet" onClick={() => setShowsDeleted(true)}>
                <Icon name="trash" />
                {t.recentlyDeleted}
              </button>
            </div>
          )}
          <SelectionBar />
          {!showsArchived.value && !boot.is_kept && <FolderList />}
          <ConversationList />
        </div>
        <FolderDialogs />
        {showsDeleted && <DeletedDialog onClose={() => setShowsDeleted(false)} />}
        <div class="sidebar-foot">
          <button
            type="button"
            class="btn btn-sm btn-quiet btn-wide-row"
            aria-pressed={showsArchived.value}
            onClick={() => setShowsArchived(!showsArchived.value)}
          >
            <Icon name={showsArchived.value ? "archiveRestore" : "archive"} />
            {showsArchived.value ? t.backToChats : t.archive}
          </button>
          <UserMenu />
        </div>
      </nav>
    </>
  );
}
