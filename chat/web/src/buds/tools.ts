/** Which tools a bud uses: its configuration, changed by switches for servers and single tools. */
import t from "../texts/buds";

export interface ToolRow {
  name: string;
  title: string;
  description: string;
}

export interface ServerRow {
  id: string;
  name: string;
  /** How many it offers, also before they are here. */
  count: number;
  tools: ToolRow[];
  /** Those that no bud gets now, by their names, and why. */
  left_out: Record<string, string>;
}

/** Of each server by its id; read only where somebody looks at tools and there are many of them. */
export type LoadTools = () => Promise<Record<string, ToolRow[]>>;

export interface Config {
  servers?: string[];
  available_tools?: string[] | null;
  disabled_tools?: string[];
  tool_choice?: unknown;
  tool_choice_every_step?: boolean;
  tool_exposure?: string;
}

const keyOf = (server: ServerRow, tool: ToolRow): string => `${server.id}.${tool.name}`;

function usesServer(config: Config, server: ServerRow, takesAll: boolean): boolean {
  return takesAll || (config.servers ?? []).includes(server.id);
}

function usesTool(config: Config, key: string): boolean {
  if ((config.disabled_tools ?? []).includes(key)) return false;
  return config.available_tools == null || config.available_tools.includes(key);
}

const whyLeftOut = (server: ServerRow, tool: ToolRow): string =>
  Object.hasOwn(server.left_out, tool.name) ? (server.left_out[tool.name] ?? "") : "";

/** How many of a server's tools a bud gets, whether these are here or not. */
export function usedCount(config: Config, server: ServerRow): number {
  if (server.tools.length > 0)
    return server.tools.filter((tool) => !whyLeftOut(server, tool) && usesTool(config, keyOf(server, tool)))
      .length;
  const ofServer = (key: string) => key.startsWith(`${server.id}.`);
  const leftOut = Object.keys(server.left_out).map((name) => `${server.id}.${name}`);
  const off = new Set([...leftOut, ...(config.disabled_tools ?? []).filter(ofServer)]);
  if (config.available_tools != null)
    return config.available_tools.filter((key) => ofServer(key) && !off.has(key)).length;
  return Math.max(0, server.count - off.size);
}

const without = (list: string[] | undefined, one: string) => (list ?? []).filter((other) => other !== one);
const having = (list: string[] | undefined, one: string) => [...without(list, one), one];

function setServer(config: Config, server: ServerRow, isOn: boolean): Config {
  return { ...config, servers: (isOn ? having : without)(config.servers, server.id) };
}

function setTool(config: Config, key: string, isOn: boolean): Config {
  const changed = { ...config };
  if (config.available_tools != null)
    changed.available_tools = (isOn ? having : without)(config.available_tools, key);
  // A list of what is available already says what is off.
  if (isOn || config.available_tools == null)
    changed.disabled_tools = (isOn ? without : having)(config.disabled_tools, key);
  return changed;
}

/** Whether tools that a server gets later are used as well. */
function setLaterTools(config: Config, servers: ServerRow[], areUsed: boolean): Config {
  const keys = servers.flatMap((server) => server.tools.map((tool) => keyOf(server, tool)));
  const off = keys.filter((key) => !usesTool(config, key));
  if (areUsed) return { ...config, available_tools: null, disabled_tools: off };
  return { ...config, available_tools: keys.filter((key) => !off.includes(key)), disabled_tools: [] };
}

const element = <K extends keyof HTMLElementTagNameMap>(
  tag: K,
  className = "",
  text = "",
): HTMLElementTagNameMap[K] => {
  const made = document.createElement(tag);
  if (className) made.className = className;
  if (text) made.textContent = text;
  return made;
};

function check(label: string, isOn: boolean, change: (isOn: boolean) => void): HTMLLabelElement {
  const box = element("label", "check");
  const input = element("input");
  input.type = "checkbox";
  input.checked = isOn;
  input.addEventListener("change", () => change(input.checked));
  box.append(input, element("span", "min-w-0 break-words", label));
  return box;
}

export function startPicker(
  root: HTMLElement,
  count: HTMLElement | null,
  servers: ServerRow[],
  initial: Config,
  takesAll: () => boolean,
  changed: (config: Config) => void,
  loadTools: LoadTools | null = null,
): { draw: () => void } {
  let config = initial;
  let loading: Promise<boolean> | null = loadTools ? null : Promise.resolve(true);
  let isHere = loadTools === null;
  let problem = "";
  let wanted = "";
  const open = new Set<string>();
  /** What each server's head says of its tools, as it is drawn. */
  const states = new Map<ServerRow, HTMLElement>();

  const search = element("input");
  search.type = "search";
  search.placeholder = t.findTools;
  search.setAttribute("aria-label", t.findTools);
  const list = element("div", "tool-picker");
  const more = element("details", "more");
  const field = element("div", "field");
  field.append(search);
  root.replaceChildren(field, list, more);

  const set = (next: Config) => {
    config = next;
    changed(config);
    tell();
  };

  const tell = () => {
    const inUse = servers.filter((server) => usesServer(config, server, takesAll()));
    const used = inUse.reduce((sum, server) => sum + usedCount(config, server), 0);
    if (count) count.textContent = t.toolsInUse(used, inUse.length);
    for (const [server, state] of states) state.textContent = stateOf(server);
  };

  const stateOf = (server: ServerRow): string => {
    if (!usesServer(config, server, takesAll())) return t.notUsed;
    return t.ofTools(usedCount(config, server), isHere ? server.tools.length : server.count);
  };

  /** Get the tools once, as soon as somebody turns to them. */
  const need = (): Promise<boolean> => {
    loading ??= (async () => {
      try {
        const tools = await loadTools?.();
        for (const server of servers) server.tools = tools?.[server.id] ?? [];
        isHere = true;
        problem = "";
      } catch {
        loading = null;
        problem = t.toolsFailed;
      }
      // What is drawn anew keeps the focus.
      const heads = () => [...root.querySelectorAll("summary")];
      const at = heads().findIndex((head) => head === document.activeElement);
      draw();
      heads()[at]?.focus();
      return isHere;
    })();
    return loading;
  };

  const drawServer = (server: ServerRow): HTMLElement | null => {
    const low = wanted.toLowerCase();
    const fits = (text: string) => text.toLowerCase().includes(low);
    const shown = server.tools.filter(
      (tool) => !low || fits(server.name) || fits(tool.name) || fits(tool.title) || fits(tool.description),
    );
    if (low && isHere && shown.length === 0 && !fits(server.name)) return null;
    const isOn = usesServer(config, server, takesAll());
    const card = element("details", "tool-server");
    card.open = open.has(server.id) || (low !== "" && shown.length > 0);
    card.addEventListener("toggle", () => (card.open ? open.add(server.id) : open.delete(server.id)));
    const head = element("summary");
    head.addEventListener("click", () => {
      if (isHere || card.open) return;
      open.add(server.id);
      void need();
    });
    const name = element("span", "grow min-w-0 break-words font-medium", server.name);
    const state = element("span", "help", stateOf(server));
    states.set(server, state);
    head.append(name, state);
    card.append(head);
    const body = element("div", "tool-server-body");
    if (!takesAll()) {
      body.append(
        check(t.useServer(server.name), isOn, (on) => {
          set(setServer(config, server, on));
          draw();
        }),
      );
    }
    if (!isHere) body.append(element("p", problem ? "field-error" : "help", problem || t.loadingTools));
    else if (server.tools.length === 0) body.append(element("p", "help", t.noToolsKnown));
    for (const tool of isOn ? shown : []) {
      const key = keyOf(server, tool);
      const row = element("div", "tool-choice");
      const label = tool.title && tool.title !== tool.name ? `${tool.title} (${tool.name})` : tool.name;
      row.append(
        check(label, usesTool(config, key), (on) => set(setTool(config, key, on))),
        element("p", "help", tool.description),
      );
      const why = whyLeftOut(server, tool);
      if (why) row.append(element("p", "help text-(--color-warning)", why));
      body.append(row);
    }
    card.append(body);
    return card;
  };

  const choices = (): HTMLElement => {
    const body = element("div", "stack-form mt-4");
    body.append(
      check(t.laterTools, config.available_tools == null, async (on) => {
        if (await need()) set(setLaterTools(config, servers, on));
        else draw();
      }),
      check(t.onDemand, config.tool_exposure === "on_demand", (on) =>
        set({ ...config, tool_exposure: on ? "on_demand" : "all" }),
      ),
    );
    const field = element("div", "field");
    const label = element("label", "", t.toolChoice);
    const select = element("select");
    label.htmlFor = select.id = "tool-choice";
    const named = (config.tool_choice as { function?: { name?: string } } | undefined)?.function?.name;
    const current = named ? `tool:${named}` : ((config.tool_choice as string | undefined) ?? "auto");
    const options: [string, string][] = [
      ["auto", t.choiceAuto],
      ["required", t.choiceRequired],
      ["none", t.choiceNone],
      ...servers
        .filter((server) => (config.servers ?? []).includes(server.id))
        .flatMap((server) =>
          server.tools.map((tool): [string, string] => [
            `tool:${server.name}.${tool.name}`,
            t.choiceTool(`${server.name}.${tool.name}`),
          ]),
        ),
    ];
    if (options.every(([value]) => value !== current))
      options.push([current, t.choiceTool(named ?? current)]);
    for (const [value, text] of options) select.add(new Option(text, value, false, value === current));
    select.addEventListener("change", () => {
      const name = select.value.startsWith("tool:") ? select.value.slice(5) : "";
      set({ ...config, tool_choice: name ? { type: "function", function: { name } } : select.value });
    });
    field.append(label, select);
    body.append(
      field,
      check(t.everyStep, config.tool_choice_every_step === true, (on) =>
        set({ ...config, tool_choice_every_step: on }),
      ),
    );
    return body;
  };

  const draw = () => {
    states.clear();
    const cards = servers.map(drawServer).filter((card) => card !== null);
    const nothing = servers.length === 0 ? t.noServers : t.nothingFound;
    list.replaceChildren(...(cards.length > 0 ? cards : [element("p", "help", nothing)]));
    const wasOpen = more.open;
    more.replaceChildren(element("summary", "link-quiet", t.advanced), choices());
    more.open = wasOpen;
    field.hidden = servers.length === 0;
    tell();
  };

  search.addEventListener("input", () => {
    wanted = search.value.trim();
    draw();
  });
  search.addEventListener("focus", () => void need());
  more.addEventListener("toggle", () => more.open && void need());
  draw();
  return { draw };
}
