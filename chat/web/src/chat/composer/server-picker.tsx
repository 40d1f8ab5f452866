import { useEffect, useRef, useState } from "preact/hooks";
import { boot } from "../../app/boot";
import { ServerTile } from "../../app/server-tile";
import { messageOf, toast } from "../../app/toasts";
import type { ToolSetting } from "../../net/api";
import { onSignedIn, openSignIn } from "../../pages/sign-in";
import { openState } from "../../store/open-conversation";
import t from "../../texts/chat";
import common from "../../texts/common";
import { Dialog } from "../../ui/dialog";
import { Icon, type IconName } from "../../ui/icon";
import type { EffectiveServer, McpConfigOverrides, Servers } from "../../wire";
import { changeTools, loadServers } from "./choice";
import { choiceOf, choiceValue, fittingServers, toolChoices } from "./choices";

type Change = (what: ToolSetting) => void;

/** Servers of which one finds the right one by looking. */
const MOST_WITHOUT_SEARCH = 7;

function face(server: EffectiveServer): { icon: IconName; tone: string; word: string } {
  if (!server.is_usable) return { icon: "close", tone: "muted", word: t.serverStates.unused };
  if (server.code === "credentials_refused")
    return { icon: "key", tone: "bad", word: t.serverStates.needsCredentials };
  switch (server.status) {
    case "connected":
      return { icon: "circleCheck", tone: "ok", word: t.serverStates.connected };
    case "auth_required":
      return { icon: "key", tone: "warn", word: t.serverStates.needsSignIn };
    case "connecting":
      return { icon: "loader", tone: "info", word: t.serverStates.connecting };
    case "error":
      return { icon: "alert", tone: "bad", word: t.serverStates.error };
    default:
      return { icon: "plug", tone: "warn", word: t.serverStates.disconnected };
  }
}

function Tools({
  server,
  overrides,
  onChange,
}: {
  server: EffectiveServer;
  overrides: McpConfigOverrides;
  onChange: Change;
}) {
  const [search, setSearch] = useState("");
  const words = search.toLowerCase();
  const shown = server.tools.filter((tool) => `${tool.name} ${tool.title}`.toLowerCase().includes(words));
  return (
    <div class="grid gap-2 pt-2 pb-2 pl-10">
      {server.tools.length > 8 && (
        <input
          type="search"
          aria-label={t.searchToolsOf(server.name)}
          placeholder={t.searchTools}
          value={search}
          onInput={(event) => setSearch(event.currentTarget.value)}
        />
      )}
      <ul class="grid gap-1.5">
        {shown.map((tool) => {
          const name = `${server.id}.${tool.name}`;
          const isOffHere = overrides.disabled_tools.some((one) => one === name || one === tool.id);
          const isLocked = tool.blocked_reason !== "" || (!tool.is_on && !isOffHere);
          return (
            <li key={tool.id}>
              <label class="check items-start">
                <input
                  type="checkbox"
                  checked={tool.is_on}
                  disabled={isLocked}
                  onChange={(event) =>
                    onChange({
                      change: event.currentTarget.checked ? "enable_tool" : "disable_tool",
                      tool_id: tool.id,
                    })
                  }
                />
                <span class="min-w-0 break-words">
                  {tool.title || tool.name}
                  {isLocked && <span class="optional">{tool.blocked_reason || t.notOffered}</span>}
                </span>
              </label>
            </li>
          );
        })}
        {shown.length === 0 && <li class="text-sm text-(--quiet)">{t.noTools}</li>}
      </ul>
    </div>
  );
}

function Row({
  server,
  overrides,
  onChange,
}: {
  server: EffectiveServer;
  overrides: McpConfigOverrides;
  onChange: Change;
}) {
  const [isOpen, setOpen] = useState(false);
  const { icon, tone, word } = face(server);
  const isAdded = overrides.additional_servers.includes(server.id);
  const canSwitch =
    server.source !== "required" && (server.is_usable || server.code === "off_here" || isAdded);
  const isOn = server.is_usable;
  const on = server.tools.filter((tool) => tool.is_on).length;
  const flip = (next: boolean) => {
    const [on, off] = isAdded
      ? (["add_server", "remove_server"] as const)
      : (["enable_server", "disable_server"] as const);
    onChange({ change: next ? on : off, server_id: server.id });
  };
  return (
    <li class="server-row">
      <div class="flex items-center gap-2.5">
        <button
          type="button"
          class="btn btn-sm btn-square btn-quiet"
          aria-expanded={isOpen}
          aria-label={t.toolsOf(server.name || t.thisServer)}
          disabled={server.tools.length === 0}
          onClick={() => setOpen(!isOpen)}
        >
          <Icon name={isOpen ? "chevronDown" : "chevronRight"} />
        </button>
        <span class="min-w-0 grow">
          <span class="flex flex-wrap items-center gap-2">
            <ServerTile id={server.id} name={server.name || t.unknownServer} />
            <span class="font-medium break-words">{server.name || t.unknownServer}</span>
            <span class="tag" data-tone={tone}>
              <Icon name={icon} />
              {word}
            </span>
          </span>
          <span class="block text-xs text-(--quiet) break-words">
            {server.reason || t.sources[server.source]}
            {server.is_usable && ` · ${t.toolsOn(on, server.tools.length)}`}
          </span>
        </span>
        {server.sign_in_url && (
          <button
            type="button"
            class="btn btn-sm btn-outline-quiet shrink-0"
            aria-label={t.signInTo(server.name)}
            onClick={() => {
              if (server.sign_in_url && !openSignIn(server.sign_in_url)) location.assign(server.sign_in_url);
            }}
          >
            <Icon name="key" />
            {t.signIn}
          </button>
        )}
        {canSwitch && (
          <input
            type="checkbox"
            class="toggle toggle-sm toggle-primary shrink-0"
            role="switch"
            aria-label={t.useServer(server.name)}
            checked={isOn}
            onChange={(event) => flip(event.currentTarget.checked)}
          />
        )}
      </div>
      {isOpen && <Tools server={server} overrides={overrides} onChange={onChange} />}
    </li>
  );
}

const CHOICES: Readonly<Record<string, string>> = {
  "": t.choiceOfBud,
  auto: t.choiceAuto,
  required: t.choiceRequired,
  none: t.choiceNone,
};

/** Which tools the model is made to call. */
function Choice({ state, onChange }: { state: Servers; onChange: Change }) {
  const current = state.overrides.tool_choice;
  return (
    <div class="field">
      <label for="chat-tool-choice">{t.toolChoice}</label>
      <select
        id="chat-tool-choice"
        value={choiceValue(current)}
        onChange={({ currentTarget }) => {
          onChange({ change: "choose_tool", tool_choice: choiceOf(currentTarget.value) });
        }}
      >
        {toolChoices(state.servers, current).map(([value, tool]) => (
          <option key={value} value={value}>
            {tool === undefined ? CHOICES[value] : t.choiceTool(tool)}
          </option>
        ))}
      </select>
    </div>
  );
}

/** Which servers and tools this conversation uses, why, and switches for what may be switched. */
export function ServerPicker({
  conversationId,
  onClose,
}: {
  /** Absent: the conversation begins with the next message. */
  conversationId: string | undefined;
  onClose: () => void;
}) {
  const [state, setState] = useState<Servers | null>(null);
  const [problem, setProblem] = useState<string | null>(null);
  const [search, setSearch] = useState("");
  const servers = fittingServers(state?.servers ?? [], search);
  const addable = fittingServers(state?.addable ?? [], search);
  const isMuch = state !== null && state.servers.length + state.addable.length > MOST_WITHOUT_SEARCH;
  /** What is known, also where it is not shown yet since other changes wait. */
  const latest = useRef<Servers | null>(null);
  const turn = useRef<Promise<void>>(Promise.resolve());
  const waiting = useRef(0);
  const asked = useRef(0);
  const load = async () => {
    try {
      const before = asked.current;
      const found = await loadServers(conversationId);
      // What was changed meanwhile answers for itself.
      if (before !== asked.current) return;
      latest.current = found;
      setState(latest.current);
      setProblem(null);
    } catch (error) {
      setProblem(messageOf(error));
    }
  };
  // Also when another tab or device has changed something of this chat.
  const row = conversationId ? openState.value?.conversation : undefined;
  useEffect(() => void load(), [conversationId, row]);
  useEffect(() => onSignedIn(() => void load()), [conversationId]);
  const apply = async (what: ToolSetting) => {
    try {
      latest.current = await changeTools(conversationId, what, latest.current);
    } catch (error) {
      toast(messageOf(error), "bad");
    }
    waiting.current -= 1;
    // Anew, so that a switch that could not be kept goes back.
    if (waiting.current === 0) setState(latest.current && { ...latest.current });
  };
  /** One change after the other; what is shown is what the last of them has left. */
  const change = (what: ToolSetting) => {
    waiting.current += 1;
    asked.current += 1;
    turn.current = turn.current.then(() => apply(what));
  };
  return (
    <Dialog title={t.servers} onClose={onClose}>
      <div class="grid gap-4 p-5 pt-3" aria-busy={state === null}>
        {problem && (
          <p class="notice" data-tone="bad">
            <Icon name="alert" />
            <span>{problem}</span>
          </p>
        )}
        {state === null && !problem && <p class="text-sm text-(--quiet)">{common.loading}</p>}
        {state && (
          <>
            {state.servers.length === 0 && <p class="text-sm text-(--quiet)">{t.noServers}</p>}
            {isMuch && (
              <div class="field">
                <input
                  type="search"
                  aria-label={t.searchServers}
                  placeholder={t.searchServers}
                  value={search}
                  onInput={(event) => setSearch(event.currentTarget.value)}
                />
              </div>
            )}
            {search !== "" && servers.length + addable.length === 0 && (
              <p class="text-sm text-(--quiet)">{t.noServerFits}</p>
            )}
            <ul class="grid gap-1">
              {servers.map((server) => (
                <Row key={server.id} server={server} overrides={state.overrides} onChange={change} />
              ))}
            </ul>
            {addable.length > 0 && (
              <section aria-labelledby="addable-title" class="grid gap-1">
                <h3 id="addable-title" class="menu-heading">
                  {t.addServer}
                </h3>
                <ul>
                  {addable.map((server) => (
                    <li key={server.id}>
                      <button
                        type="button"
                        class="pick-row"
                        onClick={() => change({ change: "add_server", server_id: server.id })}
                      >
                        <Icon name="plus" class="text-(--quiet)" />
                        <span class="min-w-0 grow truncate text-left">{server.name}</span>
                        {server.scope === "personal" && (
                          <span class="tag" data-tone="muted">
                            {t.ownServer}
                          </span>
                        )}
                      </button>
                    </li>
                  ))}
                </ul>
              </section>
            )}
            {state.servers.length > 0 && <Choice state={state} onChange={change} />}
          </>
        )}
        <div class="flex flex-wrap items-center gap-x-4 gap-y-2">
          {boot.urls.add_server && (
            <a class="btn btn-sm btn-outline-quiet" href={boot.urls.add_server}>
              <Icon name="plus" />
              {t.addNewServer}
            </a>
          )}
          <a class="link-quiet text-sm" href={boot.urls.servers}>
            {t.allServers(boot.workspace.name)}
          </a>
          {!boot.workspace.decides_requests && (
            <a class="link-quiet text-sm" href={boot.urls.requests}>
              {t.askForTool}
            </a>
          )}
        </div>
      </div>
    </Dialog>
  );
}
