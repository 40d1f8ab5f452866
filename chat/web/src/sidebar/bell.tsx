import { signal } from "@preact/signals";
import { boot } from "../app/boot";
import { hasNoticesFailed, loadNotices, notices, readNotice, unread } from "../app/notices";
import common from "../texts/common";
import t from "../texts/shell";
import { Icon } from "../ui/icon";
import { Menu } from "../ui/menu";
import { ago } from "../ui/time";

const now = signal(Date.now());

/** The person's notices in this workspace: how many are unread, and the last of them. */
export function Bell() {
  const url = boot.urls.notices;
  if (!url) return null;
  const count = unread.value;
  const rows = notices.value;
  return (
    <Menu
      label={count ? t.noticesUnread(count) : t.notices}
      buttonClass="btn btn-quiet btn-wide-row"
      button={
        <>
          <Icon name="bell" />
          <span class="grow text-left">{t.notices}</span>
          {count > 0 && (
            <span class="bell-number" aria-hidden="true">
              {count > 99 ? t.manyUnread : count}
            </span>
          )}
        </>
      }
    >
      <div class="bell-head">
        <span class="menu-heading">{t.notices}</span>
        {count > 0 && (
          <button
            type="button"
            class="btn btn-xs btn-quiet"
            onClick={() => {
              now.value = Date.now();
              loadNotices({ marksRead: true });
            }}
          >
            {t.markAllRead}
          </button>
        )}
      </div>
      {hasNoticesFailed.value ? (
        <p class="quiet p-4" role="alert">
          {t.noticesFailed}
        </p>
      ) : (
        !rows?.length && <p class="quiet p-4">{rows ? t.noNotices : common.loading}</p>
      )}
      <ul>
        {rows?.map((notice) => (
          <li key={notice.id}>
            <a
              class="bell-item"
              href={notice.url || "#"}
              data-unread={notice.is_read ? undefined : ""}
              onClick={() => readNotice(notice.id)}
              onAuxClick={(event) => event.button === 1 && readNotice(notice.id)}
            >
              <span class="font-medium">{notice.title}</span>
              {notice.text && <span class="quiet text-sm">{notice.text}</span>}
              <span class="quiet text-xs">
                {ago(now.value - Date.parse(notice.at))}
                {!notice.is_read && <span class="sr-only">{t.unread}</span>}
              </span>
            </a>
          </li>
        ))}
      </ul>
      {(rows?.length ?? 0) > 0 && (
        <a class="btn btn-sm btn-quiet w-full" href={`${url}all/`}>
          {t.allNotices}
        </a>
      )}
    </Menu>
  );
}
