/**
 * The contract between this app and the server, as types: the boot JSON, the REST rows, the socket's
 * commands and events. Nothing else crosses the wire, and an event of another type is ignored.
 */

export type Json = string | number | boolean | null | Json[] | { [key: string]: Json };
export type JsonObject = { [key: string]: Json };

export interface Boot {
  user: { id: string; email: string; name: string };
  workspace: { id: string; slug: string; name: string; role: string; is_auditor: boolean };
  workspaces: { slug: string; name: string }[];
  conversation_id: string | null;
  urls: {
    servers: string;
    connections: string;
    audit: string | null;
    notices: string | null;
    admin: string | null;
    account: string;
    logout: string;
    api: string;
    socket: string;
  };
  remembers_permissions: boolean;
  csrf_token: string;
  demo_model: boolean;
}

export interface Page<Row> {
  results: Row[];
  next: string | null;
  previous: string | null;
}

export interface Bud {
  id: string;
  slug: string;
  name: string;
  description: string;
  avatar: string;
  starter_prompts: string[];
  model: { name: string; is_demo: boolean };
  servers: { id: string; name: string; status: string }[];
  is_archived: boolean;
}

export interface Conversation {
  id: string;
  title: string;
  bud: { id: string; slug: string; name: string; avatar: string };
  is_pinned: boolean;
  is_archived: boolean;
  /** The message that the shown path ends with. */
  leaf_id: string | null;
  forked_from: string | null;
  status: "idle" | "running" | "waiting";
  usage: Usage | null;
  created_at: string;
  updated_at: string;
}

/** What has been counted; the cost is a decimal number as text, null where no prices are known. */
export interface Usage {
  prompt_tokens: number;
  /** Of the prompt's: those that came out of the provider's cache. */
  cached_tokens: number;
  completion_tokens: number;
  cost: string | null;
}

export interface Message {
  id: string;
  conversation_id: string;
  turn_id: string | null;
  parent_id: string | null;
  role: "user" | "assistant";
  step: number;
  text: string;
  /** What the model thought before it spoke. */
  reasoning: string;
  status: "streaming" | "complete" | "stopped" | "failed";
  client_id: string | null;
  attachments: Attachment[];
  usage: Usage | null;
  /** How many of the tokens that the model reads were used up with this answer. */
  context_window: { used: number; limit: number | null } | null;
  created_at: string;
}

/** A resource that a message took along, and what was read of it. */
export interface Attachment {
  id: string;
  server: { id: string; name: string };
  resource_id: string | null;
  uri: string;
  title: string;
  mime_type: string;
  status: "queued" | "ready" | "failed";
  error: string | null;
  content: ContentPart[];
  read_at: string | null;
  /** When its server last said that it changed. */
  changed_at: string | null;
}

export interface ResourceName {
  server_id: string;
  uri: string;
  resource_id?: string | null;
}

export interface Resource {
  id: string;
  server: { id: string; name: string };
  uri: string;
  is_template: boolean;
  name: string;
  title: string;
  description: string;
  mime_type: string;
  size: number | null;
  changed_at: string | null;
}

export interface Prompt {
  id: string;
  server: { id: string; name: string };
  name: string;
  title: string;
  description: string;
  arguments: { name: string; title: string; description: string; required: boolean }[];
}

export interface FilledPrompt {
  description: string;
  messages: { role: string; content: ContentPart }[];
  warnings: string[];
}

export interface Overrides {
  additional_servers: string[];
  disabled_servers: string[];
  disabled_tools: string[];
  tool_choice: Json;
}

export interface EffectiveServer {
  id: string;
  name: string;
  scope: string | null;
  source: "required" | "bud" | "conversation" | "personal";
  is_usable: boolean;
  code: string;
  reason: string;
  status: string | null;
  transport: string | null;
  /** Where the person can sign in, if that is what is missing. */
  sign_in_url: string | null;
  tools: {
    id: string;
    name: string;
    title: string;
    description: string;
    annotations: Annotations;
    is_on: boolean;
  }[];
}

export interface ServersOfChat {
  servers: EffectiveServer[];
  addable: { id: string; name: string; scope: string; status: string }[];
  overrides: Overrides;
}

/** A person's "always" for one tool. */
export interface ToolPermission {
  id: string;
  server: { id: string; name: string };
  tool: { id: string; name: string; title: string };
  conversation: { id: string; title: string } | null;
  created_at: string;
  is_current: boolean;
  reason: string;
}

export interface Annotations {
  read_only: boolean | null;
  destructive: boolean | null;
  idempotent: boolean | null;
  open_world: boolean | null;
}

export interface Approval {
  rule: string;
  reason: string;
  /** Whose access it would use, as long as it waits. */
  credential: "workspace" | "personal" | null;
  expires_at: string;
  decision: null | "approved" | "refused";
  decided_by: string | null;
  decided_at: string | null;
  note: string | null;
  edited: boolean;
  /** Whether the person may answer this once and for all. */
  can_remember: boolean;
}

export type ContentPart =
  | { type: "text"; text: string }
  | { type: "image"; mime_type: string; data: string }
  | { type: "audio"; mime_type: string; data: string }
  | { type: "resource_link"; uri: string; name: string }
  | { type: "resource"; uri: string; mime_type: string | null; text: string | null };

export type ToolCallStatus =
  | "queued"
  | "waiting_for_approval"
  | "waiting_for_input"
  | "running"
  | "succeeded"
  | "failed"
  | "refused"
  | "cancelled"
  | "outcome_unknown"
  | "marked_done"
  | "given_up"
  | "repeated";

export interface ToolCall {
  id: string;
  turn_id: string;
  message_id: string;
  position: number;
  server: { id: string; name: string } | null;
  tool: { id: string | null; name: string; title: string };
  /** The platform's own tool that was asked for, if it was one. */
  builtin: string | null;
  /** The file's version that the call sends, read or made. */
  artifact: ArtifactRef | null;
  annotations: Annotations;
  arguments: JsonObject;
  proposed_arguments: JsonObject;
  input_schema: JsonObject | null;
  status: ToolCallStatus;
  approval: Approval | null;
  /** Of a call whose outcome is or was unknown. */
  resolution: { due_at: string | null; note: string | null } | null;
  /** The call in whose place this one was made. */
  repeats: string | null;
  result: {
    content: ContentPart[];
    truncated: boolean;
    structured?: Json;
    /** Why the structured content is not shown, if there was some. */
    structured_problem?: string | null;
  } | null;
  /** When the result was fetched that is given here again. */
  cached_at: string | null;
  error: string | null;
  started_at: string | null;
  finished_at: string | null;
  duration_ms: number | null;
}

export type ArtifactKind =
  | "text"
  | "markdown"
  | "code"
  | "html"
  | "svg"
  | "csv"
  | "json"
  | "image"
  | "pdf"
  | "binary";

/** A version of a file as a tool call names it. */
export interface ArtifactRef {
  id: string;
  name: string;
  version: number;
  kind: ArtifactKind;
  content_type: string;
  size: number;
}

export interface ArtifactVersion {
  number: number;
  kind: ArtifactKind;
  content_type: string;
  size: number;
  sha256: string;
  origin: "model" | "tool" | "upload" | "edit" | "restore";
  made_by: string | null;
  tool_call_id: string | null;
  message_id: string | null;
  created_at: string;
}

/** A file of a conversation, with its newest version. */
export interface Artifact {
  id: string;
  conversation_id: string;
  name: string;
  is_deleted: boolean;
  version: ArtifactVersion;
  created_at: string;
  updated_at: string;
}

/** What becomes of a message that is sent while a turn runs. */
export type WhenBusy = "refuse" | "queue" | "interrupt";

/** What becomes of a call whose outcome is unknown. */
export type Resolution = "run_again" | "mark_done" | "give_up";

/** A message that waits for the running turn to end. */
export interface QueuedMessage {
  id: string;
  conversation_id: string;
  client_id: string;
  text: string;
  attachments: { server_id: string; uri: string }[];
  is_next: boolean;
  created_at: string;
}

/** What a server, or for a sign-in the platform, asked the person during a call, and what became of it. */
export interface InputRequest {
  id: string;
  call_id: string;
  conversation_id: string | null;
  server: { id: string; name: string };
  tool: string;
  kind: "form" | "url" | "sampling" | "sign_in";
  message: string;
  schema: JsonObject;
  url: string;
  url_host: string;
  warnings: string[];
  params: JsonObject;
  /** Sampling: the model that would answer. */
  model: string;
  /** Of an open sign-in: the page of ours where it begins, and whether this person may do it. */
  sign_in: { path: string; may_connect: boolean } | null;
  status: "pending" | "accepted" | "declined" | "cancelled" | "expired";
  expires_at: string;
  answered_at: string | null;
  answer: JsonObject | null;
}

export type InputAction = "accept" | "decline" | "cancel";

export interface Turn {
  id: string;
  conversation_id: string;
  user_message_id: string;
  status:
    | "queued"
    | "running"
    | "waiting_for_approval"
    | "waiting_for_input"
    | "completed"
    | "failed"
    | "cancelled"
    | "interrupted";
  error: null | { code: string; message: string; can_retry: boolean };
  notice: string | null;
  created_at: string;
  finished_at: string | null;
  usage: Usage | null;
}

export type Command =
  | { type: "subscribe"; conversation_id: string; seq?: number; ref?: string }
  | { type: "unsubscribe"; conversation_id: string; ref?: string }
  | {
      type: "send";
      conversation_id: string;
      client_id: string;
      text: string;
      attachments?: ResourceName[];
      when_busy?: WhenBusy;
      ref?: string;
    }
  | { type: "edit_message"; message_id: string; client_id: string; text: string; ref?: string }
  | { type: "regenerate"; turn_id: string; client_id: string; ref?: string }
  | { type: "show_branch"; message_id: string; ref?: string }
  | { type: "edit_queued"; queued_id: string; text: string; ref?: string }
  | { type: "remove_queued"; queued_id: string; ref?: string }
  | { type: "send_queued"; queued_id: string; ref?: string }
  | { type: "resolve"; tool_call_id: string; resolution: Resolution; note?: string; ref?: string }
  | { type: "stop"; turn_id: string; ref?: string }
  | { type: "retry"; turn_id: string; ref?: string }
  | {
      type: "decide";
      tool_call_id: string;
      decision: "approve" | "refuse";
      arguments?: JsonObject;
      note?: string;
      remember?: "conversation" | "everywhere";
      ref?: string;
    }
  | {
      type: "answer_input";
      input_request_id: string;
      action: InputAction;
      content?: JsonObject;
      ref?: string;
    }
  | { type: "ping"; ref?: string }
  | { type: "ack"; number: number; ref?: string };

export interface Snapshot {
  type: "snapshot";
  conversation_id: string;
  seq: number;
  conversation: Conversation;
  messages: Message[];
  turns: Turn[];
  tool_calls: ToolCall[];
  input_requests: InputRequest[];
  queue: QueuedMessage[];
  artifacts: Artifact[];
}

interface Numbered {
  conversation_id: string;
  seq: number;
}

export type RowEvent =
  | ({ type: "message.saved"; message: Message } & Numbered)
  | ({ type: "turn.changed"; turn: Turn } & Numbered)
  | ({ type: "tool_call.changed"; tool_call: ToolCall } & Numbered)
  | ({ type: "input_request.changed"; input_request: InputRequest } & Numbered)
  | ({ type: "queue.changed"; queue: QueuedMessage[] } & Numbered)
  | ({ type: "artifact.changed"; artifact: Artifact } & Numbered)
  | ({ type: "conversation.changed"; conversation: Conversation } & Numbered);

export interface TextDelta {
  type: "text.delta";
  conversation_id: string;
  message_id: string;
  /** Length of the message's text before this piece, in UTF-16 code units. */
  offset: number;
  text: string;
}

/** As TextDelta, of what the model thinks before it speaks. */
export interface ReasoningDelta extends Omit<TextDelta, "type"> {
  type: "reasoning.delta";
}

export interface ToolCallProgress {
  type: "tool_call.progress";
  conversation_id: string;
  tool_call_id: string;
  progress: number;
  total: number | null;
  message: string | null;
}

export interface Current {
  type: "current";
  conversation_id: string;
  seq: number;
}

export interface WorkspaceChanged {
  type: "workspace.changed";
  kind: string;
  id: string;
}

export interface Accepted {
  type: "accepted";
  ref: string | null;
  message_id?: string;
  turn_id?: string;
  queued_id?: string;
}

/** The server asks whether the page still reads; answered by an `ack` with the same number. */
export interface Check {
  type: "check";
  number: number;
}

export interface WireError {
  type: "error";
  ref: string | null;
  code: string;
  message: string;
  /** What is wrong with each field of the command. */
  details?: Record<string, string[]>;
}

/** What belongs to one conversation and goes through its reducer. */
export type ConversationEvent = Snapshot | Current | RowEvent | TextDelta | ReasoningDelta | ToolCallProgress;
export type ServerEvent =
  | ConversationEvent
  | WorkspaceChanged
  | Accepted
  | WireError
  | Check
  | { type: "pong" };

/** What a page hears of; checks are answered before. */
export type PageEvent = Exclude<ServerEvent, Check>;

const TYPES: ReadonlySet<string> = new Set<ServerEvent["type"]>([
  "snapshot",
  "current",
  "message.saved",
  "turn.changed",
  "tool_call.changed",
  "conversation.changed",
  "input_request.changed",
  "queue.changed",
  "artifact.changed",
  "text.delta",
  "reasoning.delta",
  "tool_call.progress",
  "workspace.changed",
  "accepted",
  "error",
  "pong",
  "check",
]);

/** Read one frame; null for anything outside the closed set of our own events. */
export function parseEvent(frame: unknown): ServerEvent | null {
  if (typeof frame !== "string") return null;
  try {
    const value: unknown = JSON.parse(frame);
    if (typeof value !== "object" || value === null || !("type" in value)) return null;
    return typeof value.type === "string" && TYPES.has(value.type) ? (value as ServerEvent) : null;
  } catch {
    return null;
  }
}

export const TURN_IS_ACTIVE: ReadonlySet<Turn["status"]> = new Set([
  "queued",
  "running",
  "waiting_for_approval",
  "waiting_for_input",
] as const);

export const CALL_IS_ACTIVE: ReadonlySet<ToolCallStatus> = new Set([
  "queued",
  "waiting_for_approval",
  "waiting_for_input",
  "running",
] as const);
