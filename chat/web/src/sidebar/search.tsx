import { useEffect, useRef, useState } from "preact/hooks";
import { api, conversationPath, go, messageOf, reveal } from "../app";
import { openPanel } from "../artifacts/state";
import common from "../texts/common";
import t from "../texts/shell";
import { Dialog } from "../ui/dialog";
import { SearchField } from "../ui/search-field";
import { clockTime } from "../ui/time";
import type { Conversation, Found } from "../wire";

const asFound = (row: Conversation): Found => ({
  conversation_id: row.id,
  title: row.title,
  avatar: row.bud.avatar,
  is_archived: row.is_archived,
  message_id: null,
  artifact_id: null,
  excerpt: [],
  at: row.updated_at,
});
const keyOf = (row: Found): string => `found-${row.message_id ?? row.artifact_id ?? row.conversation_id}`;

function Excerpt({ row }: { row: Found }) {
  if (row.excerpt.length === 0) return null;
  return (
    <span class="block truncate text-xs text-(--quiet)">
      {row.artifact_id && `${t.file}: `}
      {row.excerpt.map((piece, at) => (piece.is_match ? <mark key={at}>{piece.text}</mark> : piece.text))}
    </span>
  );
}

/** Search in titles, messages and names of files of all conversations: type, arrow keys, Enter. */
export function SearchDialog({ onClose }: { onClose: () => void }) {
  const [query, setQuery] = useState("");
  const [rows, setRows] = useState<Found[] | null>(null);
  const [problem, setProblem] = useState<string | null>(null);
  const [at, setAt] = useState(0);
  const latest = useRef(0);

  useEffect(() => {
    latest.current += 1;
    const mine = latest.current;
    const timer = setTimeout(
      async () => {
        try {
          const wanted = query.trim();
          const found = wanted
            ? await api.search(wanted)
            : (await api.conversations()).results.slice(0, 30).map(asFound);
          if (mine !== latest.current) return;
          setRows(found);
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

  const open = (row: Found | undefined) => {
    if (!row) return;
    onClose();
    go(conversationPath(row.conversation_id));
    if (row.message_id) reveal(row.message_id);
    if (row.artifact_id) openPanel(row.artifact_id);
  };
  const found = rows ?? [];
  return (
    <Dialog title={t.searchTitle} isBare onClose={onClose}>
      <SearchField
        label={t.searchTitle}
        placeholder={t.searchPlaceholder}
        value={query}
        list="search-results"
        rows={found.map(keyOf)}
        at={at}
        onInput={setQuery}
        onMark={setAt}
        onChoose={() => open(found[at])}
        onClose={onClose}
      />
      <div class="search-results" tabIndex={0} role="region" aria-label={t.results}>
        {problem && <p class="p-4 text-sm">{problem}</p>}
        {!problem && rows && found.length === 0 && (
          <p class="p-6 text-center text-sm text-(--quiet)">{query ? t.nothingFound(query) : t.noChats}</p>
        )}
        <div id="search-results" role="listbox" aria-label={t.chats}>
          {found.map((row, i) => (
            <div
              key={keyOf(row)}
              id={keyOf(row)}
              class="search-row"
              role="option"
              aria-selected={i === at}
              onMouseEnter={() => setAt(i)}
              onClick={() => open(row)}
            >
              <span aria-hidden="true">{row.avatar || "🌱"}</span>
              <span class="min-w-0 grow">
                <span class="block truncate">{row.title || common.newChat}</span>
                <Excerpt row={row} />
              </span>
              {row.is_archived && <span class="text-xs text-(--quiet)">{t.inArchive}</span>}
              <span class="text-xs text-(--quiet) whitespace-nowrap">{clockTime(row.at)}</span>
            </div>
          ))}
        </div>
      </div>
    </Dialog>
  );
}
