/** Which tools a bud uses: its configuration, changed by switches for servers and single tools. */
import t from "./texts/buds";

export interface ToolRow {
  name: string;
  title: string;
  description: string;
}

export interface ServerRow {
  id: string;
  name: string;
  tools: ToolRow[];
}

export interface Config {
  servers?: string[];
  available_tools?: string[] | null;
  disabled_tools?: string[];
  tool_choice?: unknown;
  tool_choice_every_step?: boolean;
  tool_exposure?: string;
}

export const keyOf = (server: ServerRow, tool: ToolRow): string => `${server.id}.${tool.name}`;

export function usesServer(config: Config, server: ServerRow, takesAll: boolean): boolean {
  return takesAll || (config.servers ?? []).includes(server.id);
}

export function usesTool(config: Config, key: string): boolean {
  if ((config.disabled_tools ?? []).includes(key)) return false;
  return config.available_tools == null || config.available_tools.includes(key);
}

const without = (list: string[] | undefined, one: string) => (list ?? []).filter((other) => other !== one);
const having = (list: string[] | undefined, one: string) => [...without(list, one), one];

export function setServer(config: Config, server: ServerRow, isOn: boolean): Config {
  return { ...config, servers: (isOn ? having : without)(config.servers, server.id) };
}

export function setTool(config: Config, key: string, isOn: boolean): Config {
  const changed = { ...config };
  if (config.available_tools != null)
    changed.available_tools = (isOn ? having : without)(config.available_tools, key);
  // A list of what is available already says what is off.
  if (isOn || config.available_tools == null)
    changed.disabled_tools = (isOn ? without : having)(config.disabled_tools, key);
  return changed;
}

/** Whether tools that a server gets later are used as well. */
export function setLaterTools(config: Config, servers: ServerRow[], areUsed: boolean): Config {
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
): { draw: () => void } {
  let config = initial;
  let wanted = "";
  const open = new Set<string>();

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
    const tools = inUse.flatMap((s) => s.tools.filter((tool) => usesTool(config, keyOf(s, tool))));
    if (count) count.textContent = t.toolsInUse(tools.length, inUse.length);
  };

  const drawServer = (server: ServerRow): HTMLElement | null => {
    const low = wanted.toLowerCase();
    const fits = (text: string) => text.toLowerCase().includes(low);
    const shown = server.tools.filter(
      (tool) => !low || fits(server.name) || fits(tool.name) || fits(tool.title) || fits(tool.description),
    );
    if (low && shown.length === 0 && !fits(server.name)) return null;
    const isOn = usesServer(config, server, takesAll());
    const card = element("details", "tool-server");
    card.open = open.has(server.id) || (low !== "" && shown.length > 0);
    card.addEventListener("toggle", () => (card.open ? open.add(server.id) : open.delete(server.id)));
    const used = server.tools.filter((tool) => usesTool(config, keyOf(server, tool))).length;
    const head = element("summary");
    const name = element("span", "grow min-w-0 break-words font-medium", server.name);
    const state = isOn ? t.ofTools(used, server.tools.length) : t.notUsed;
    head.append(name, element("span", "help", state));
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
    if (server.tools.length === 0) body.append(element("p", "help", t.noToolsKnown));
    for (const tool of isOn ? shown : []) {
      const key = keyOf(server, tool);
      const row = element("div", "tool-choice");
      const label = tool.title && tool.title !== tool.name ? `${tool.title} (${tool.name})` : tool.name;
      row.append(
        check(label, usesTool(config, key), (on) => set(setTool(config, key, on))),
        element("p", "help", tool.description),
      );
      body.append(row);
    }
    card.append(body);
    return card;
  };

  const choices = (): HTMLElement => {
    const body = element("div", "stack-form mt-4");
    body.append(
      check(t.laterTools, config.available_tools == null, (on) => set(setLaterTools(config, servers, on))),
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
  draw();
  return { draw };
}
