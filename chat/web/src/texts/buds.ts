/** The editor of buds. */
import { plural } from "./language";

const buds = {
  tokens: (count: number) => plural(count, { one: "about # token", other: "about # tokens" }),
  empty: "Nothing yet.",
  findTools: "Find tools",
  toolsInUse: (tools: number, servers: number) =>
    `${plural(tools, { one: "# tool", other: "# tools" })} of ${plural(servers, { one: "# server", other: "# servers" })}`,
  ofTools: (used: number, all: number) => `${used} of ${plural(all, { one: "# tool", other: "# tools" })}`,
  notUsed: "not used",
  useServer: (name: string) => `Use ${name}`,
  loadingTools: "Loading the tools",
  toolsFailed: "The tools could not be loaded. Try again.",
  noToolsKnown: "No tool is known yet.",
  noServers: "This workspace has no servers yet. Admins add them under Servers.",
  nothingFound: "Nothing fits.",
  advanced: "Advanced",
  laterTools: "Also use tools that these servers get later",
  onDemand: "Load tools on demand: the model looks tools up, which keeps prompts small",
  toolChoice: "Which tools the model calls",
  choiceAuto: "As it sees fit",
  choiceRequired: "At least one",
  choiceNone: "None",
  choiceTool: (name: string) => `Always ${name}`,
  everyStep: "In every step, not only in the first",
  startAgain: "Start again",
  testFailed: "The test could not be started. Try again.",
  knowledgeFacts: (kind: string, size: string, parts: number, lines: number) =>
    [
      kind,
      size,
      parts > 1
        ? plural(parts, { one: "# part", other: "# parts" })
        : plural(lines, { one: "# line", other: "# lines" }),
    ].join(" · "),
  knowledgeCut: "only its beginning could be read",
  meaningReady: "Searchable by meaning",
  meaningSoon: "Searched by words. Preparing it to be searched by meaning too",
  meaningPreparing: (done: number, all: number) =>
    `Searched by words. Preparing: ${done} of ${plural(all, { one: "# passage", other: "# passages" })}`,
  meaningFault: (why: string, again: string) =>
    `Searched by words only. ${why}${again ? ` Trellis tries again ${again}.` : ""}`,
  knowledgeNone: "No files yet.",
  knowledgeSending: (percent: number) => `Uploading, ${percent} %`,
  knowledgeReading: "Reading the file",
  knowledgeAdded: (name: string) => `${name} was added.`,
  knowledgeRemoved: (name: string) => `${name} was removed.`,
  knowledgeRemove: (name: string) => `Remove ${name}`,
  knowledgeSure: (name: string) =>
    `Remove “${name}”? The bud no longer finds it, and links to it in earlier answers stop working.`,
  knowledgeTooLarge: (size: string) => `This file is too large. A file may have up to ${size}.`,
  knowledgeFailed: "The file could not be added. Try again.",
  remove: "Remove",
  cancel: "Cancel",
  download: (name: string) => `Download ${name}`,
  dismiss: "Dismiss",
  testFaults: "The draft has faults:",
};

export default buds;
