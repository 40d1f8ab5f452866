import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { api } from "../app/boot";
import { conversationPath, go, reveal } from "../app/place";
import { messageAt } from "../app/toasts";
import { openPanel } from "../artifacts/state";
import { type Offer, offersFor, termAt } from "../audit/search";
import { moment } from "../formats";
import { takeEarly } from "../shortcuts/early";
import { buds } from "../store/buds";
import common from "../texts/common";
import t from "../texts/shell";
import { Dialog } from "../ui/dialog";
import { Icon } from "../ui/icon";
import { SearchField } from "../ui/search-field";
import type { Conversation, Found } from "../wire";
import { folders, loadFolders } from "./folders";

const asFound = (row: Conversation): Found => ({
  found_in: "title",
  name: "",
  conversation_id: row.id,
  title: row.title,
  avatar: row.bud.avatar,
  is_archived: row.is_archived,
  message_id: null,
  artifact_id: null,
  excerpt: [],
  at: row.updated_at,
});

/** The word at the end of the query: there people type. */
const termOf = (query: string): string => query.slice(termAt(query, query.length).from);

/** Filters and values that the end of the query may become. */
function offersOf(query: string): Offer[] {
  if (termOf(query).length < 2) return [];
  const known = {
    keys: Object.entries(t.filters),
    values: {
      from: (buds.value ?? []).map((bud) => bud.name),
      in: folders.value.map((folder) => folder.name),
      has: ["file"],
      is: ["archived", "pinned"],
    },
  };
  const isOpen = termOf(query).includes(":");
  const low = termOf(query).toLowerCase();
  const offers = offersFor(query, query.length, known);
  return isOpen ? offers : offers.filter((offer) => offer.text.startsWith(low));
}

const asOffer = (name: string): Offer => ({
  text: name,
  help: "",
  value: `${name}:`,
  caret: name.length + 1,
});
const offerKey = (offer: Offer): string => `offer-${offer.text.replace(/\W+/g, "-")}`;
const keyOf = (row: Found): string => `found-${row.message_id ?? row.artifact_id ?? row.conversation_id}`;

/** How many places of each kind are given at most, as the service has it. */
const MOST_BY_NAME = 10;
const MOST_BESIDE = 10;
const MOST_MESSAGES = 30;

/** Whether there may be more than was found. */
export function isCut(found: readonly Found[]): boolean {
  const count = (...places: Found["found_in"][]) =>
    found.filter((row) => places.includes(row.found_in)).length;
  return (
    count("message") >= MOST_MESSAGES ||
    count("call", "file") >= MOST_BESIDE ||
    count("file_name") >= MOST_BY_NAME ||
    count("title") >= MOST_BY_NAME
  );
}

/** Where words were found, if that is neither a title nor what somebody said. */
function placeOf(row: Found): string {
  if (row.found_in === "call") return t.inCall(row.name);
  if (row.found_in === "file") return t.inFile(row.name);
  return row.found_in === "file_name" ? t.file : "";
}

function Excerpt({ row }: { row: Found }) {
  if (row.excerpt.length === 0) return null;
  return (
    <span class="line-clamp-3 text-xs text-(--quiet)">
      {placeOf(row) && `${placeOf(row)}: `}
      {row.excerpt.map((piece, at) => (piece.is_match ? <mark key={at}>{piece.text}</mark> : piece.text))}
    </span>
  );
}

/** What the dialog shows, all of it for one query: it is replaced as a whole, in one paint. */
interface Shown {
  query: string;
  offers: readonly Offer[];
  /** Null: nothing was searched for. */
  found: readonly Found[] | null;
  problem: string | null;
  /** How many lists there were before it. */
  turn: number;
  /** For each row: with which of these lists its element came. */
  since: readonly number[];
}

/**
 * What to show next.
 *
 * Rows at the beginning that are the same as before keep their elements. All others get new ones, so no element
 * goes elsewhere under a pointer, and a press that began on one never opens another.
 */
function shownNext(before: Shown | null, next: Pick<Shown, "query" | "offers" | "found" | "problem">): Shown {
  const rowsOf = (one: typeof next) =>
    [...one.offers, ...(one.found ?? [])].map((row) => JSON.stringify(row));
  const rows = rowsOf(next);
  const old = before ? rowsOf(before) : [];
  const turn = (before?.turn ?? 0) + 1;
  const hasSameHead = !before?.problem && !next.problem && (before?.query === "") === (next.query === "");
  const differs = hasSameHead ? rows.findIndex((row, i) => row !== old[i]) : 0;
  const same = differs < 0 ? rows.length : differs;
  return { ...next, turn, since: rows.map((_, i) => (i < same ? (before?.since[i] ?? turn) : turn)) };
}

/** Search in titles, messages, files and tool calls of all conversations: type, arrow keys, Enter. */
export function SearchDialog({ onClose }: { onClose: () => void }) {
  const [query, setQuery] = useState("");
  /** Stays until there is an answer to what is typed now. */
  const [shown, setShown] = useState<Shown | null>(null);
  const results = useRef<HTMLDivElement>(null);
  const opensFirst = useRef(false);
  const [chosenAt, setAt] = useState<number | null>(null);
  const latest = useRef(0);
  const isFilter = termOf(query).includes(":");
  const values = isFilter ? offersOf(query) : [];
  useEffect(() => void loadFolders(), []);

  useLayoutEffect(() => {
    latest.current += 1;
    const mine = latest.current;
    const show = (found: readonly Found[] | null, problem: string | null = null) => {
      setShown((before) => shownNext(before, { query, offers: offersOf(query), found, problem }));
      setAt(null);
    };
    if (values.length > 0) return show(null); // it is still being typed
    const timer = setTimeout(
      async () => {
        try {
          const wanted = query.trim();
          const found = wanted
            ? await api.search(wanted)
            : (await api.conversations()).results.slice(0, 30).map(asFound);
          if (mine !== latest.current) return;
          if (opensFirst.current && found.length > 0) return open(found[0]);
          show(found);
        } catch (error) {
          if (mine === latest.current) show(null, messageAt("q", error));
        }
      },
      query ? 180 : 0,
    );
    return () => clearTimeout(timer);
  }, [query, values.map((offer) => offer.value).join("\n")]);
  // What was looked at further down was another list.
  useLayoutEffect(() => results.current?.scrollTo?.(0, 0), [shown?.query]);

  const open = (row: Found | undefined) => {
    if (!row) return;
    onClose();
    go(conversationPath(row.conversation_id));
    if (row.message_id) reveal(row.message_id);
    if (row.artifact_id) openPanel(row.artifact_id);
  };
  const { offers = [], problem, since = [], turn = 0 } = shown ?? {};
  const found = shown?.found ?? [];
  const isCurrent = shown?.query === query;
  // A word that begins as a filter does is more likely a word.
  const at = chosenAt ?? (isFilter || found.length === 0 ? 0 : offers.length);
  const complete = (offer: Offer) => {
    setQuery(offer.value);
    setAt(null);
    document.querySelector<HTMLInputElement>(".search-input")?.focus();
  };
  return (
    <Dialog title={t.searchTitle} isBare onClose={onClose}>
      <SearchField
        label={t.searchTitle}
        placeholder={t.searchPlaceholder}
        value={query}
        list="search-results"
        rows={[...offers.map(offerKey), ...found.map(keyOf)]}
        at={at}
        onFocus={() => {
          const early = takeEarly();
          if (early.text) setQuery((before) => before + early.text);
          if (early.chooses) opensFirst.current = true;
        }}
        onInput={(text) => {
          setQuery(text);
          setAt(null);
          opensFirst.current = false;
        }}
        onMark={setAt}
        onChoose={() => {
          const offer = offers[at];
          if (!isCurrent)
            opensFirst.current = true; // as soon as it is here
          else if (offer) complete(offer);
          else open(found[at - offers.length]);
        }}
        onClose={onClose}
      />
      <div
        ref={results}
        class="search-results is-steady"
        tabIndex={0}
        role="region"
        aria-label={t.results}
        aria-busy={shown !== null && !isCurrent}
      >
        {problem && (
          <p class="p-4 text-sm" role="alert">
            {problem}
          </p>
        )}
        {(shown?.query ?? query) === "" && (
          <p class="search-hints">
            <span>{t.filterBy}</span>
            {Object.keys(t.filters).map((name) => (
              <button key={name} type="button" class="kbd-key" onClick={() => complete(asOffer(name))}>
                {name}:
              </button>
            ))}
          </p>
        )}
        {isCurrent && shown?.found?.length === 0 && (
          <p class="p-6 text-center text-sm text-(--quiet)">{query ? t.nothingFound(query) : t.noChats}</p>
        )}
        <div id="search-results" role="listbox" aria-label={t.chats}>
          {offers.map((offer, i) => (
            <div
              key={`${offerKey(offer)} ${since[i]}`}
              id={offerKey(offer)}
              class="search-row"
              role="option"
              aria-selected={i === at}
              onMouseMove={() => setAt(i)}
              onClick={() => complete(offer)}
            >
              <Icon name="search" />
              <code>{offer.text}</code>
              <span class="grow truncate text-xs text-(--quiet)">{offer.help}</span>
            </div>
          ))}
          {found.map((row, i) => (
            <div
              key={`${keyOf(row)} ${since[i + offers.length]}`}
              id={keyOf(row)}
              class="search-row"
              role="option"
              aria-selected={i + offers.length === at}
              onMouseMove={() => setAt(i + offers.length)}
              onClick={() => open(row)}
            >
              <span aria-hidden="true">{row.avatar || "🌱"}</span>
              <span class="min-w-0 grow">
                <span class="block truncate" dir="auto">
                  {row.title || common.newChat}
                </span>
                <Excerpt row={row} />
              </span>
              {row.is_archived && <span class="text-xs text-(--quiet)">{t.inArchive}</span>}
              <span class="max-sm:hidden text-xs text-(--quiet) whitespace-nowrap">{moment(row.at)}</span>
            </div>
          ))}
        </div>
        <div key={turn}>
          {isCut(found) && <p class="p-3 text-center text-sm text-(--quiet)">{t.moreFound}</p>}
          {shown?.query && shown.found && (isCurrent || found.length > 0) && (
            <p class="p-3 text-center text-xs text-(--quiet)">{t.searchedInPart}</p>
          )}
        </div>
      </div>
    </Dialog>
  );
}
