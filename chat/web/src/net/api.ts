/** The REST API with the session's cookie; problems come out as one readable sentence. */

import type { Theme } from "../browser/theme";
import type { OwnKeys } from "../shortcuts/own";
import common from "../texts/common";
import type {
  AttachmentContent,
  Bud,
  ChosenModel,
  Conversation,
  Draft,
  FilledPrompt,
  Folder,
  Found,
  McpConfigOverrides,
  Message,
  Model,
  Older,
  Person,
  Pin,
  Prompt,
  Resource,
  Servers,
  Share,
  ToolCall,
  Waiting,
} from "../wire";

export interface ShareChoice {
  audience: Share["audience"];
  people: string[];
  with_files: boolean;
  with_calls: boolean;
  expires_at: string | null;
  until_message_id: string | null;
}

interface Page<Row> {
  results: Row[];
  next: string | null;
  previous: string | null;
}

export class ApiProblem extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
    /** What of the request it is about. */
    readonly field = "",
  ) {
    super(message);
  }
}

interface ErrorBody {
  errors?: { code?: string; detail?: string; attr?: string | null }[];
}

export async function problemOf(response: Response): Promise<ApiProblem> {
  let body: ErrorBody = {};
  try {
    body = (await response.json()) as ErrorBody;
  } catch {
    // An answer without JSON (a proxy's page) still has its status.
  }
  const first = body.errors?.[0];
  const detail = body.errors
    ?.map((error) =>
      error.attr && error.detail ? common.fieldProblem(error.attr, error.detail) : error.detail,
    )
    .filter(Boolean)
    .join(" ");
  const fallback =
    common.failedWith[response.status] ?? (response.status >= 500 ? common.serverFailed : common.failed);
  // 500 is a fault that nobody foresaw, so its text says nothing. The others from 500 on say what is out of reach.
  const isPlain = ![401, 500].includes(response.status) && detail;
  return new ApiProblem(
    response.status,
    first?.code ?? `http_${response.status}`,
    isPlain ? detail : fallback,
    first?.attr ?? "",
  );
}

/** The server's answer; a problem where there is none, or where it says so. */
export async function answered(url: string, init: RequestInit): Promise<Response> {
  let response: Response;
  try {
    response = await fetch(url, init);
  } catch {
    throw new ApiProblem(0, "offline", common.offline);
  }
  if (!response.ok) throw await problemOf(response);
  return response;
}

/** What a conversation begins with besides its bud. */
export interface ConversationChoice {
  model: ChosenModel;
  mcp_config_overrides: McpConfigOverrides;
  is_temporary: boolean;
  folder_id: string;
}

type BulkChange = "archive" | "unarchive" | "move" | "delete" | "restore" | "erase";
export type FolderColour = Folder["colour"];

/** A chat that is open, or one that is about to begin. */
export type ChatSetting = { conversation: string } | { bud: string; overrides: McpConfigOverrides };

/** One change; done twice, it is done once. */
export type ToolSetting =
  | { change: "add_server" | "remove_server" | "enable_server" | "disable_server"; server_id: string }
  | { change: "enable_tool" | "disable_tool"; tool_id: string }
  | { change: "choose_tool"; tool_choice: McpConfigOverrides["tool_choice"] };

export interface Suggestion {
  kind: "prompt" | "resource";
  /** The prompt or the template. */
  id: string;
  argument: string;
  value: string;
  context: Record<string, string>;
}

interface Api {
  buds(): Promise<Bud[]>;
  conversations(query?: {
    archived?: boolean;
    folder?: string | null;
    page?: string;
  }): Promise<Page<Conversation>>;
  /** One thing done with several conversations. */
  bulk(ids: readonly string[], change: BulkChange, folderId?: string | null): Promise<Conversation[]>;
  pins(): Promise<Pin[]>;
  /** Gives all pins as they are now. */
  setPin(pin: Pin, isPinned: boolean): Promise<Pin[]>;
  drafts(): Promise<Draft[]>;
  /** Gives what is kept: one that was not seen stays. */
  keepDraft(draft: Omit<Draft, "version"> & { base_version: number }): Promise<Draft>;
  folders(): Promise<Folder[]>;
  createFolder(name: string, colour: FolderColour): Promise<Folder>;
  changeFolder(id: string, change: Partial<Pick<Folder, "name" | "colour">>): Promise<Folder>;
  deleteFolder(id: string): Promise<void>;
  conversation(id: string): Promise<Conversation>;
  startConversation(budId: string, key: string, choice: Partial<ConversationChoice>): Promise<Conversation>;
  models(): Promise<Model[]>;
  /** What waits for the person, in all conversations. */
  waiting(): Promise<Waiting[]>;
  /** Of the person, for each of their devices. */
  saveTheme(theme: Theme): Promise<void>;
  /** The same; null: the usual keys. */
  saveShortcuts(choice: OwnKeys | null): Promise<void>;
  /** Answer what a member asks for; they are told. */
  decideRequest(id: string, isGranted: boolean, note: string): Promise<void>;
  /** Allow or refuse, as a second person, a call that somebody else asked for. */
  decideCall(id: string, decision: "approve" | "refuse", note: string): Promise<ToolCall>;
  /** Have a tool ask each time, in all one's own chats. */
  askAlways(toolId: string): Promise<void>;
  /** Places in one's own conversations. */
  search(query: string): Promise<Found[]>;
  /** What was said before a message. */
  older(messageId: string): Promise<Older>;
  /** What was said from a message on; nothing, where it is on another branch. */
  newer(messageId: string): Promise<Older>;
  /** All that was read of an attached resource. */
  attachment(id: string): Promise<AttachmentContent>;
  /** The shown path as a file, with the name that it should have. */
  exported(id: string, as: "md" | "json"): Promise<{ name: string; body: Blob }>;
  /** Of older messages; the socket tells of the change. */
  changeSummary(messageId: string, change: { text?: string; is_used?: boolean }): Promise<Message>;
  fork(messageId: string, clientId: string): Promise<Conversation>;
  changeConversation(
    id: string,
    change: Partial<Pick<Conversation, "title" | "is_pinned" | "is_archived" | "folder_id">> & {
      bud_id?: string;
      model?: ChosenModel | null;
    },
  ): Promise<Conversation>;
  /** Make a temporary one a usual one. */
  keepConversation(id: string): Promise<Conversation>;
  deleteConversation(id: string): Promise<void>;
  /** How a conversation is shared. */
  share(id: string): Promise<Share>;
  saveShare(id: string, choice: ShareChoice): Promise<Share>;
  stopSharing(id: string): Promise<void>;
  /** Members to share with. */
  findPeople(search: string): Promise<Person[]>;
  /** The first page without one. */
  deletedConversations(page?: string): Promise<Page<Conversation>>;
  restoreConversation(id: string): Promise<Conversation>;
  eraseConversation(id: string): Promise<void>;
  serversOf(at: ChatSetting): Promise<Servers>;
  /** One change of what a chat changes of its bud's tools; gives what it uses then. */
  changeTools(id: string, what: ToolSetting): Promise<Servers>;
  resources(at: ChatSetting, search: string): Promise<Resource[]>;
  prompts(at: ChatSetting, search: string): Promise<Prompt[]>;
  fillPrompt(at: ChatSetting, promptId: string, values: Record<string, string>): Promise<FilledPrompt>;
  complete(at: ChatSetting, wanted: Suggestion): Promise<string[]>;
}

export function createApi(base: string, csrfToken: string, workspaceSlug: string): Api {
  const root = base.endsWith("/") ? base : `${base}/`;

  async function call<Result>(
    method: string,
    path: string,
    body?: unknown,
    extra?: HeadersInit,
  ): Promise<Result> {
    const headers = new Headers(extra);
    headers.set("Accept", "application/json");
    headers.set("X-Workspace", workspaceSlug);
    if (method !== "GET") headers.set("X-CSRFToken", csrfToken);
    const init: RequestInit = { method, headers, credentials: "same-origin" };
    if (body !== undefined) {
      headers.set("Content-Type", "application/json");
      init.body = JSON.stringify(body);
    }
    const response = await answered(path.startsWith("/") ? path : root + path, init);
    return (response.status === 204 ? undefined : await response.json()) as Result;
  }

  /** Every row of a list, page after page. */
  async function all<Row>(path: string): Promise<Row[]> {
    let page = await call<Page<Row>>("GET", path);
    const rows = [...page.results];
    while (page.next) {
      page = await call<Page<Row>>("GET", pathOf(page.next));
      rows.push(...page.results);
    }
    return rows;
  }

  return {
    buds: () => all<Bud>("buds/"),
    conversations({ archived, folder, page } = {}) {
      if (page) return call("GET", pathOf(page));
      const query = new URLSearchParams();
      if (folder) query.set("folder", folder);
      query.set("archived", archived ? "true" : "false");
      return call("GET", `conversations/?${query}`);
    },
    bulk: (ids, change, folderId = null) =>
      call("POST", "conversations/bulk/", {
        ids,
        change,
        ...(change === "move" && { folder_id: folderId }),
      }),
    pins: () => call("GET", "pins/"),
    setPin: (pin, isPinned) => call("POST", "pins/", { ...pin, is_pinned: isPinned }),
    drafts: () => call("GET", "drafts/"),
    keepDraft: (draft) => call("POST", "drafts/", draft),
    folders: () => all<Folder>("folders/"),
    createFolder: (name, colour) => call("POST", "folders/", { name, colour }),
    changeFolder: (id, change) => call("PATCH", `folders/${id}/`, change),
    deleteFolder: (id) => call("DELETE", `folders/${id}/`),
    conversation: (id) => call("GET", `conversations/${id}/`),
    startConversation: (budId, key, choice) =>
      call("POST", "conversations/", { bud_id: budId, ...choice }, { "Idempotency-Key": key }),
    models: () => call("GET", "models/"),
    waiting: () => call("GET", "waiting/"),
    saveTheme: (theme) => call("POST", "profile/", { theme }),
    saveShortcuts: (shortcuts) => call("POST", "profile/", { shortcuts }),
    decideRequest: (id, is_granted, note) =>
      call("POST", `access-requests/${id}/decide/`, { is_granted, note }),
    decideCall: (id, decision, note) => call("POST", `tool-calls/${id}/decide/`, { decision, note }),
    askAlways: (tool_id) => call("POST", "tool-permissions/", { tool_id }),
    search: (query) => call("GET", `search/?${new URLSearchParams({ q: query })}`),
    older: (messageId) => call("GET", `messages/${messageId}/older/`),
    attachment: (id) => call("GET", `attachments/${id}/`),
    newer: (messageId) => call("GET", `messages/${messageId}/newer/`),
    async exported(id, as) {
      const headers = { "X-Workspace": workspaceSlug };
      const init: RequestInit = { headers, credentials: "same-origin" };
      const response = await answered(`${root}conversations/${id}/export/?as=${as}`, init);
      const name = /filename="([^"]+)"/.exec(response.headers.get("Content-Disposition") ?? "")?.[1];
      return {
        name: name ?? (as === "json" ? "conversation.json" : "conversation.md"),
        body: await response.blob(),
      };
    },
    changeSummary: (messageId, change) => call("PATCH", `messages/${messageId}/summary/`, change),
    fork: (messageId, clientId) => call("POST", `messages/${messageId}/fork/`, { client_id: clientId }),
    changeConversation: (id, change) => call("PATCH", `conversations/${id}/`, change),
    keepConversation: (id) => call("POST", `conversations/${id}/keep/`),
    deleteConversation: (id) => call("DELETE", `conversations/${id}/`),
    share: (id) => call("GET", `conversations/${id}/share/`),
    saveShare: (id, choice) => call("PUT", `conversations/${id}/share/`, choice),
    stopSharing: (id) => call("DELETE", `conversations/${id}/share/`),
    findPeople: (search) => call("GET", `shared-chats/people/?${new URLSearchParams({ search })}`),
    deletedConversations: (page) => call("GET", page ? pathOf(page) : "conversations/deleted/"),
    restoreConversation: (id) => call("POST", `conversations/${id}/restore/`),
    eraseConversation: (id) => call("POST", `conversations/${id}/erase/`),
    serversOf: (at) => call("GET", offerPath(at, "servers")),
    changeTools: (id, what) => call("POST", `conversations/${id}/tools/`, what),
    resources: (at, search) => call("GET", offerPath(at, "resources", search)),
    prompts: (at, search) => call("GET", offerPath(at, "prompts", search)),
    fillPrompt: (at, promptId, values) =>
      call("POST", offerPath(at, "prompts"), { prompt_id: promptId, arguments: values }),
    async complete(at, wanted) {
      const found = await call<{ values: string[] }>("POST", offerPath(at, "completions"), wanted);
      return found.values;
    },
  };
}

/** Where to ask for what the servers of a chat offer. */
function offerPath(
  at: ChatSetting,
  what: "servers" | "resources" | "prompts" | "completions",
  search = "",
): string {
  const query = new URLSearchParams();
  if (search) query.set("search", search);
  if ("conversation" in at) return `conversations/${at.conversation}/${what}/?${query}`;
  const { additional_servers, disabled_servers } = at.overrides;
  if (additional_servers.length > 0) query.set("added", additional_servers.join(","));
  if (disabled_servers.length > 0) query.set("off", disabled_servers.join(","));
  return `buds/${at.bud}/${what}/?${query}`;
}

/** The path of a next-page address: behind a proxy its host may be one that the browser does not know. */
function pathOf(address: string): string {
  const url = new URL(address, location.origin);
  return url.pathname + url.search;
}
