import { useEffect, useState } from "preact/hooks";
import { messageOf } from "../../app/toasts";
import { expand, pick, variablesOf } from "../../store/attachments";
import { HOME } from "../../store/draft";
import { pickResource } from "../../store/picked";
import t from "../../texts/chat";
import common from "../../texts/common";
import { Dialog } from "../../ui/dialog";
import { Icon } from "../../ui/icon";
import type { Resource } from "../../wire";
import { findResources, suggest } from "./choice";
import { SuggestField } from "./suggest-field";

const WAIT_MS = 200;
/** The server gives as many at most. */
const MOST = 200;

function Template({
  resource,
  conversationId,
  onPick,
}: {
  resource: Resource;
  conversationId: string | undefined;
  onPick: (uri: string) => void;
}) {
  const names = variablesOf(resource.uri);
  const [values, setValues] = useState<Record<string, string>>({});
  const address = expand(resource.uri, values);
  const isReady = names.every((name) => (values[name] ?? "").trim() !== "");
  return (
    <form
      class="grid gap-3 p-3"
      onSubmit={(event) => {
        event.preventDefault();
        if (isReady) onPick(address);
      }}
    >
      {names.map((name, i) => (
        <SuggestField
          key={name}
          name={name}
          label={name}
          required
          isFirst={i === 0}
          value={values[name] ?? ""}
          onInput={(value) => setValues({ ...values, [name]: value })}
          suggest={(value) =>
            suggest(conversationId, {
              kind: "resource",
              id: resource.id,
              argument: name,
              value,
              context: Object.fromEntries(Object.entries(values).filter(([other]) => other !== name)),
            })
          }
        />
      ))}
      <p class="text-xs text-(--quiet) break-all">{address}</p>
      <button type="submit" class="btn btn-sm btn-primary justify-self-start" disabled={!isReady}>
        {t.attach}
      </button>
    </form>
  );
}

function Row({
  resource,
  conversationId,
  onPick,
}: {
  resource: Resource;
  conversationId: string | undefined;
  onPick: (uri: string) => void;
}) {
  const [isOpen, setOpen] = useState(false);
  return (
    <li>
      <button
        type="button"
        class="pick-row"
        aria-expanded={resource.is_template ? isOpen : undefined}
        onClick={() => (resource.is_template ? setOpen(!isOpen) : onPick(resource.uri))}
      >
        <Icon name={resource.is_template ? "slash" : "fileText"} class="text-(--quiet)" />
        <span class="min-w-0 grow text-left">
          <span class="block truncate font-medium">{resource.title || resource.name || resource.uri}</span>
          <span class="block truncate text-xs text-(--quiet)">
            {resource.is_template ? `${t.needsDetails} · ` : ""}
            {resource.description || resource.uri}
          </span>
        </span>
        {resource.mime_type && (
          <span class="tag shrink-0" data-tone="muted">
            {resource.mime_type}
          </span>
        )}
      </button>
      {isOpen && <Template resource={resource} conversationId={conversationId} onPick={onPick} />}
    </li>
  );
}

/** What the servers of a conversation, or of the next one, have to attach, grouped by server. */
export function ResourcePicker(props: { conversationId: string | undefined; onClose: () => void }) {
  const { conversationId, onClose } = props;
  const [search, setSearch] = useState("");
  const [rows, setRows] = useState<Resource[] | null>(null);
  const [problem, setProblem] = useState<string | null>(null);
  useEffect(() => {
    let isCurrent = true;
    const load = async () => {
      try {
        const found = await findResources(conversationId, search);
        if (!isCurrent) return;
        setRows(found);
        setProblem(null);
      } catch (error) {
        if (isCurrent) setProblem(messageOf(error));
      }
    };
    const timer = setTimeout(load, search === "" ? 0 : WAIT_MS);
    return () => {
      isCurrent = false;
      clearTimeout(timer);
    };
  }, [search, conversationId]);
  const groups = rows ? [...Map.groupBy(rows, (row) => row.server.name)] : [];
  return (
    <Dialog title={t.pickResource} onClose={onClose}>
      <div class="grid gap-3 p-5 pt-3">
        <div class="field">
          <label class="sr-only" for="resource-search">
            {common.search}
          </label>
          <input
            id="resource-search"
            type="search"
            placeholder={t.searchResources}
            autocomplete="off"
            autofocus
            value={search}
            onInput={(event) => setSearch(event.currentTarget.value)}
          />
        </div>
        <div class="pick-list" aria-busy={rows === null}>
          {problem ? (
            <p class="notice" data-tone="bad">
              <Icon name="alert" />
              <span>{problem}</span>
            </p>
          ) : rows === null ? (
            <p class="text-sm text-(--quiet)">{common.loading}</p>
          ) : rows.length === 0 ? (
            <p class="text-sm text-(--quiet)">{search ? t.noMatches : t.noResources}</p>
          ) : (
            groups.map(([server, list]) => (
              <section key={server} aria-label={server}>
                <h3 class="menu-heading">{server}</h3>
                <ul>
                  {list.map((resource) => (
                    <Row
                      key={resource.id}
                      resource={resource}
                      conversationId={conversationId}
                      onPick={(uri) => {
                        pickResource(conversationId ?? HOME, pick(resource, uri));
                        onClose();
                      }}
                    />
                  ))}
                </ul>
              </section>
            ))
          )}
        </div>
        {rows !== null && rows.length >= MOST && (
          <p class="text-sm text-(--quiet)">{t.moreResources(MOST)}</p>
        )}
        <p class="text-xs text-(--quiet)">{t.pickResourceAbout}</p>
      </div>
    </Dialog>
  );
}
