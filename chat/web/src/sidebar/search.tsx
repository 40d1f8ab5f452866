import { useEffect, useRef, useState } from "preact/hooks";
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

/** Search in titles, messages, files and tool calls of all conversations: type, arrow keys, Enter. */
export function SearchDialog({ onClose }: { onClose: () => void }) {
  const [query, setQuery] = useState("");
  const [rows, setRows] = useState<Found[] | null>(null);
  /** For which query they were found; others are still on their way. */
  const [foundFor, setFoundFor] = useState("");
  const opensFirst = useRef(false);
  const [problem, setProblem] = useState<string | null>(null);
  const [chosenAt, setAt] = useState<number | null>(null);
  const latest = useRef(0);
  const offers = offersOf(query);
  const isFilter = termOf(query).includes(":");
  useEffect(() => void loadFolders(), []);

  useEffect(() => {
    latest.current += 1;
    const mine = latest.current;
    if (isFilter && offers.length > 0) return; // it is still being typed
    const timer = setTimeout(
      async () => {
        try {
          const wanted = query.trim();
          const found = wanted
            ? await api.search(wanted)
            : (await api.conversations()).results.slice(0, 30).map(asFound);
          if (mine !== latest.current) return;
          if (opensFirst.current && found.length > 0) return open(found[0]);
          setRows(found);
          setFoundFor(query);
          setProblem(null);
          setAt(null);
        } catch (error) {
          if (mine !== latest.current) return;
          setProblem(messageAt("q", error));
          setRows([]);
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
          if (offer) complete(offer);
          else if (foundFor === query) open(found[at - offers.length]);
          else opensFirst.current = true; // as soon as it is here
        }}
        onClose={onClose}
      />
      <div class="search-results" tabIndex={0} role="region" aria-label={t.results}>
        {problem && (
          <p class="p-4 text-sm" role="alert">
            {problem}
          </p>
        )}
        {query === "" && (
          <p class="search-hints">
            <span>{t.filterBy}</span>
            {Object.keys(t.filters).map((name) => (
              <button key={name} type="button" class="kbd-key" onClick={() => complete(asOffer(name))}>
                {name}:
              </button>
            ))}
          </p>
        )}
        {!problem && rows && found.length === 0 && foundFor === query && (
          <p class="p-6 text-center text-sm text-(--quiet)">{query ? t.nothingFound(query) : t.noChats}</p>
        )}
        <div id="search-results" role="listbox" aria-label={t.chats}>
          {offers.map((offer, i) => (
            <div
              key={offerKey(offer)}
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
              key={keyOf(row)}
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
        {isCut(found) && <p class="p-3 text-center text-sm text-(--quiet)">{t.moreFound}</p>}
        {query && rows && foundFor === query && (
          <p class="p-3 text-center text-xs text-(--quiet)">{t.searchedInPart}</p>
        )}
      </div>
    </Dialog>
  );
}
