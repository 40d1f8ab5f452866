/** Which buds, models, commands and servers some typed words mean. Pure. */
import { calendarDay, plain } from "../../formats";
import type { ToolSetting } from "../../net/api";
import t from "../../texts/choosing";
import type {
  AddableServer,
  Bud,
  ChosenModel,
  EffectiveServer,
  McpConfigOverrides,
  Model,
  Pin,
  Servers,
} from "../../wire";

const has = (text: string, words: readonly string[]): boolean => {
  const lower = text.toLowerCase();
  return words.every((word) => lower.includes(word));
};
const wordsOf = (typed: string): string[] => typed.toLowerCase().split(/\s+/).filter(Boolean);

export const matchingBuds = (buds: readonly Bud[], typed: string): Bud[] =>
  buds.filter((bud) => has(`${bud.name} ${bud.description}`, wordsOf(typed)));

export const matchingModels = (models: readonly Model[], typed: string): Model[] =>
  models.filter((model) => has(`${model.name} ${model.provider_name}`, wordsOf(typed)));

export const pinOf = (one: Bud | Model): Pin =>
  "provider_name" in one
    ? { bud_id: null, provider_id: one.provider_id, model: one.name }
    : { bud_id: one.id, provider_id: null, model: "" };

const isSamePin = (a: Pin, b: Pin): boolean =>
  a.bud_id === b.bud_id && a.provider_id === b.provider_id && a.model === b.model;

export const isPinned = (one: Bud | Model, pins: readonly Pin[]): boolean =>
  pins.some((pin) => isSamePin(pin, pinOf(one)));

/** The pins with this one in or out. */
export const withPin = (pins: readonly Pin[], pin: Pin, isIn: boolean): Pin[] => {
  const others = pins.filter((one) => !isSamePin(one, pin));
  return isIn ? [...others, pin] : others;
};

export const isSameModel = (a: ChosenModel | null, b: ChosenModel | null): boolean =>
  a?.name === b?.name && a?.provider_id === b?.provider_id;

/** Those that could answer in place of the one that did. Of models with one name, nobody can tell here which one that was. */
export function otherModels(all: readonly Model[], answered: string | null): Model[] {
  const isOne = all.filter((model) => model.name === answered).length < 2;
  return all.filter((model) => !isOne || model.name !== answered);
}

/** Whether the demo model answers: by choice, or since it is the bud's. `isPlatforms`: the platform's own model is that one. */
export const isDemoAnswering = (
  bud: Bud | undefined,
  chosen: ChosenModel | null | undefined,
  isPlatforms: boolean,
): boolean => (chosen ? chosen.provider_id === null && isPlatforms : (bud?.model.is_demo ?? isPlatforms));

export const isOfBud = (model: Model, bud: Bud): boolean =>
  model.is_demo ? bud.model.is_demo : isSameModel(model, bud.model);

/** The name of the model that should answer and is not among those of the workspace; "": it is, or nobody knows yet. */
export function unusableModel(
  bud: Bud | undefined,
  chosen: ChosenModel | null,
  known: readonly Model[] | null,
): string {
  if (!bud || !known) return "";
  const isKnown = known.some((one) => (chosen ? isSameModel(one, chosen) : isOfBud(one, bud)));
  return isKnown ? "" : (chosen ?? bud.model).name;
}

function short(tokens: number): string {
  if (tokens >= 1_000_000) return `${plain(Math.round(tokens / 100_000) / 10)}M`;
  return tokens >= 1000 ? `${Math.round(tokens / 1000)}k` : String(tokens);
}

/** What is known of a model, in a few words. */
export function factsOf(model: Model): string[] {
  const facts = [];
  if (model.context_tokens !== null) facts.push(t.context(short(model.context_tokens)));
  if (model.sees_pictures) facts.push(t.seesPictures);
  if (!model.gets_tools) facts.push(t.getsNoTools);
  if (model.reasons) facts.push(t.reasons);
  if (model.prompt_price !== null && model.completion_price !== null) {
    facts.push(t.price(plain(Number(model.prompt_price)), plain(Number(model.completion_price))));
    if (model.prices_listed_on) facts.push(t.listedOn(calendarDay(model.prices_listed_on)));
  }
  if (model.gone_since) facts.push(t.goneSince(calendarDay(model.gone_since)));
  if (model.ends_on) facts.push(t.endsOn(calendarDay(model.ends_on)));
  return facts;
}

const COMMANDS = ["bud", "model", "compare", "file", "search", "tools", "new", "temporary"] as const;
export type CommandName = (typeof COMMANDS)[number];

export const matchingCommands = (typed: string): CommandName[] =>
  COMMANDS.filter((name) => name.startsWith(typed));

/** The servers that a text names as whole words, and that the chat does not use. */
export function namedServers(text: string, servers: readonly AddableServer[]): AddableServer[] {
  return servers.filter(({ name }) => {
    if (name.length < 3) return false;
    const escaped = name.replace(/[.*+?^${}()|[\]\\]/g, "\\$&").replace(/[-_\s]+/g, "[-_\\s]+");
    return new RegExp(`(^|[^\\p{L}\\p{N}])${escaped}($|[^\\p{L}\\p{N}])`, "iu").test(text);
  });
}

export const NO_OVERRIDES: McpConfigOverrides = {
  additional_servers: [],
  disabled_servers: [],
  disabled_tools: [],
  tool_choice: null,
};

export function hasOverrides(overrides: McpConfigOverrides): boolean {
  const lists = [overrides.additional_servers, overrides.disabled_servers, overrides.disabled_tools];
  return lists.some((list) => list.length > 0) || overrides.tool_choice !== null;
}

/** The servers whose names or tools hold these words. */
export function fittingServers<Row extends AddableServer | EffectiveServer>(
  servers: readonly Row[],
  typed: string,
): Row[] {
  const words = wordsOf(typed);
  return servers.filter((server) => {
    const tools = "tools" in server ? server.tools.map((tool) => `${tool.name} ${tool.title}`) : [];
    return has([server.name, ...tools].join(" "), words);
  });
}

const withOrWithout = (list: readonly string[], value: string, isIn: boolean): string[] => {
  const others = list.filter((one) => one !== value);
  return isIn ? [...others, value] : others;
};

/** What a chat that is about to begin changes, after one more change; as the server does it for one that has begun. Pure. */
export function withSetting(
  now: McpConfigOverrides,
  what: ToolSetting,
  servers: readonly EffectiveServer[],
): McpConfigOverrides {
  switch (what.change) {
    case "choose_tool":
      return { ...now, tool_choice: what.tool_choice };
    case "add_server":
    case "remove_server": {
      const isAdded = what.change === "add_server";
      return {
        ...now,
        additional_servers: withOrWithout(now.additional_servers, what.server_id, isAdded),
        ...(isAdded && { disabled_servers: withOrWithout(now.disabled_servers, what.server_id, false) }),
      };
    }
    case "enable_server":
    case "disable_server": {
      const isOff = what.change === "disable_server";
      return { ...now, disabled_servers: withOrWithout(now.disabled_servers, what.server_id, isOff) };
    }
    default: {
      const server = servers.find((one) => one.tools.some((tool) => tool.id === what.tool_id));
      const tool = server?.tools.find((one) => one.id === what.tool_id);
      if (!server || !tool) return now;
      const name = `${server.id}.${tool.name}`;
      const isOff = what.change === "disable_tool";
      return { ...now, disabled_tools: withOrWithout(now.disabled_tools, name, isOff) };
    }
  }
}

const OF_TOOL = "tool:";
type ToolChoice = McpConfigOverrides["tool_choice"];

/** A choice as the value of a list's entry: empty, where the bud's own counts. */
export const choiceValue = (choice: ToolChoice): string =>
  choice !== null && typeof choice === "object" ? OF_TOOL + choice.function.name : (choice ?? "");

export function choiceOf(value: string): ToolChoice {
  if (value.startsWith(OF_TOOL)) return { type: "function", function: { name: value.slice(OF_TOOL.length) } };
  return value === "auto" || value === "none" || value === "required" ? value : null;
}

/** What can be chosen: its value, and the tool's name where it is one. */
export function toolChoices(servers: readonly EffectiveServer[], current: ToolChoice): [string, string?][] {
  const names = servers
    .filter((server) => server.is_usable)
    .flatMap((server) =>
      server.tools.filter((tool) => tool.is_on).map((tool) => `${server.name}.${tool.name}`),
    );
  const named = current !== null && typeof current === "object" ? [current.function.name] : [];
  const all = [...new Set([...names, ...named])];
  return [
    [""],
    ["auto"],
    ["required"],
    ["none"],
    ...all.map((name): [string, string] => [OF_TOOL + name, name]),
  ];
}

/** What the server tells of a chat that is about to begin, with what the chat changes of single tools. */
export function withOverrides(servers: Servers, overrides: McpConfigOverrides): Servers {
  const isOff = (server: EffectiveServer, name: string) =>
    overrides.disabled_tools.includes(`${server.id}.${name}`);
  const shown = servers.servers.map((server) => ({
    ...server,
    tools: server.tools.map((tool) => (isOff(server, tool.name) ? { ...tool, is_on: false } : tool)),
  }));
  return { ...servers, servers: shown, overrides };
}
