import { useEffect, useRef, useState } from "preact/hooks";
import { api, conversationPath, go, messageOf } from "../app";
import common from "../texts/common";
import t from "../texts/shell";
import { Dialog } from "../ui/dialog";
import { Icon } from "../ui/icon";
import { clockTime } from "../ui/time";
import type { Conversation } from "../wire";

/** Search over all conversations: type, arrow keys, Enter. */
export function SearchDialog({ onClose }: { onClose: () => void }) {
  const [query, setQuery] = useState("");
  const [rows, setRows] = useState<Conversation[] | null>(null);
  const [problem, setProblem] = useState<string | null>(null);
  const [at, setAt] = useState(0);
  const latest = useRef(0);

  useEffect(() => {
    latest.current += 1;
    const mine = latest.current;
    const timer = setTimeout(
      async () => {
        try {
          const page = await api.conversations(query.trim() ? { search: query.trim() } : {});
          if (mine !== latest.current) return;
          setRows(page.results.slice(0, 30));
          setProblem(null);
          setAt(0);
        } catch (error) {
          if (mine === latest.current) setProblem(messageOf(error));
        }
      },
      query ? 180 : 0,
    );
    return () => clearTimeout(timer);
  }, [query]);

  useEffect(() => {
    const row = rows?.[at];
    if (row) document.getElementById(`found-${row.id}`)?.scrollIntoView({ block: "nearest" });
  }, [at, rows]);

  const open = (row: Conversation | undefined) => {
    if (!row) return;
    onClose();
    go(conversationPath(row.id));
  };
  const found = rows ?? [];
  return (
    <Dialog title={t.searchTitle} isBare onClose={onClose}>
      <div class="search-head">
        <Icon name="search" />
        <input
          type="search"
          class="search-input"
          placeholder={t.searchPlaceholder}
          aria-label={t.searchTitle}
          role="combobox"
          list={undefined}
          aria-expanded={found.length > 0}
          aria-controls="search-results"
          aria-activedescendant={found[at] ? `found-${found[at].id}` : undefined}
          autocomplete="off"
          autofocus
          value={query}
          onInput={(event) => setQuery(event.currentTarget.value)}
          onKeyDown={(event) => {
            if (event.key === "ArrowDown" || event.key === "ArrowUp") {
              event.preventDefault();
              const step = event.key === "ArrowDown" ? 1 : -1;
              setAt((now) => (found.length ? (now + step + found.length) % found.length : 0));
            } else if (event.key === "Enter") {
              event.preventDefault();
              open(found[at]);
            }
          }}
        />
        <button type="button" class="kbd-key" onClick={onClose}>
          {t.keys.escape}
        </button>
      </div>
      <div class="search-results" tabIndex={0} role="region" aria-label={t.results}>
        {problem && <p class="p-4 text-sm">{problem}</p>}
        {!problem && rows && found.length === 0 && (
          <p class="p-6 text-center text-sm text-(--quiet)">{query ? t.nothingFound(query) : t.noChats}</p>
        )}
        <div id="search-results" role="listbox" aria-label={t.chats}>
          {found.map((row, i) => (
            <div
              key={row.id}
              id={`found-${row.id}`}
              class="search-row"
              role="option"
              aria-selected={i === at}
              onMouseEnter={() => setAt(i)}
              onClick={() => open(row)}
            >
              <span aria-hidden="true">{row.bud.avatar || "🌱"}</span>
              <span class="truncate grow">{row.title || common.newChat}</span>
              <span class="text-xs text-(--quiet) whitespace-nowrap">{clockTime(row.updated_at)}</span>
            </div>
          ))}
        </div>
      </div>
    </Dialog>
  );
}
