// Written by `manage.py write_wire`; change chat/wire/events.py, chat/wire/commands.py or the API's shapes, not this file.

export type Json = string | number | boolean | null | Json[] | { [key: string]: Json };
export type JsonObject = { [key: string]: Json };

export type Command =
  | Subscribe
  | Unsubscribe
  | Seen
  | Send
  | EditMessage
  | Regenerate
  | Compare
  | Choose
  | Continue
  | Rate
  | ShowBranch
  | EditQueued
  | RemoveQueued
  | SendQueued
  | Resolve
  | Stop
  | Retry
  | Decide
  | AnswerInput
  | Ping
  | Ack;

export type ServerEvent =
  | Snapshot
  | Current
  | MessageSaved
  | TurnChanged
  | ToolCallChanged
  | ConversationChanged
  | InputRequestChanged
  | QueueChanged
  | ArtifactChanged
  | TextDelta
  | ReasoningDelta
  | ToolCallProgress
  | Accepted
  | CommandFailed
  | WorkspaceChanged
  | Check
  | Pong;

export type ConversationEvent =
  | Snapshot
  | Current
  | MessageSaved
  | TurnChanged
  | ToolCallChanged
  | ConversationChanged
  | InputRequestChanged
  | QueueChanged
  | ArtifactChanged
  | TextDelta
  | ReasoningDelta
  | ToolCallProgress;

export type RowEvent =
  | MessageSaved
  | TurnChanged
  | ToolCallChanged
  | ConversationChanged
  | InputRequestChanged
  | QueueChanged
  | ArtifactChanged;

export const EVENT_TYPES: ReadonlySet<string> = new Set<string>([
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
  "accepted",
  "error",
  "workspace.changed",
  "check",
  "pong",
]);

export const TURN_IS_ACTIVE: ReadonlySet<Turn["status"]> = new Set<Turn["status"]>([
  "queued",
  "running",
  "waiting_for_approval",
  "waiting_for_input",
]);

export const CALL_IS_ACTIVE: ReadonlySet<ToolCallStatus> = new Set<ToolCallStatus>([
  "queued",
  "waiting_for_approval",
  "waiting_for_input",
  "running",
]);

/** Follow a conversation. */
export interface Subscribe {
  type: "subscribe";
  ref?: string | null;
  conversation_id: string;
  /** The newest event that you have. If nothing has happened since, no snapshot is sent. */
  seq?: number | null;
}

/** Stop following a conversation. */
export interface Unsubscribe {
  type: "unsubscribe";
  ref?: string | null;
  conversation_id: string;
}

/**
 * Say that a person has seen the end of a conversation. Their other devices then no longer show it as new.
 */
export interface Seen {
  type: "seen";
  ref?: string | null;
  conversation_id: string;
  /** The `unseen_answer_at` of what they saw. An answer that ended after that stays unseen. */
  until: string;
}

/** Send a message, which begins a turn. */
export interface Send {
  type: "send";
  ref?: string | null;
  conversation_id: string;
  /** Your own id for the message. The same id again sends nothing twice. */
  client_id: string;
  /** May be empty if something is attached. */
  text: string;
  attachments?: (ResourceName | FileName)[];
  /** While a turn runs: refuse this message, queue it, or interrupt the turn. */
  when_busy?: WhenBusy;
  /** The bud that answers this message, in place of the conversation's. */
  bud_id?: string | null;
  /** Two or three models that answer this message side by side, until you choose one of their turns. */
  compare?: ModelName[];
}

/** Ask differently. The conversation branches. */
export interface EditMessage {
  type: "edit_message";
  ref?: string | null;
  message_id: string;
  /** Your own id for the new message. */
  client_id: string;
  text: string;
}

/** Have a question answered again. The conversation branches. */
export interface Regenerate {
  type: "regenerate";
  ref?: string | null;
  turn_id: string;
  /** Your own id for the new turn. */
  client_id: string;
  /** How the answer shall differ from the one before. */
  wish?: Wish;
  /** Which model answers, this once. */
  model?: ModelName | null;
}

/** Have another model answer a question. Both answers stand side by side until you choose one. */
export interface Compare {
  type: "compare";
  ref?: string | null;
  /** The turn that has answered. */
  turn_id: string;
  /** Your own id for the new turn. */
  client_id: string;
  model: ModelName;
}

/** Go on from one of the answers that stand side by side. Answers still being written are stopped. */
export interface Choose {
  type: "choose";
  ref?: string | null;
  turn_id: string;
}

/** Have an answer that was cut off by its length go on. */
export interface Continue {
  type: "continue";
  ref?: string | null;
  turn_id: string;
}

/** Say what you think of an answer. Administrators see it, without the answer. */
export interface Rate {
  type: "rate";
  ref?: string | null;
  turn_id: string;
  /** Empty: take it back. */
  rating: Rating;
  reason?: string;
}

/** Show the branch that this message is on, and go on from it. */
export interface ShowBranch {
  type: "show_branch";
  ref?: string | null;
  message_id: string;
}

/** Change a message that waits in the queue. */
export interface EditQueued {
  type: "edit_queued";
  ref?: string | null;
  queued_id: string;
  text: string;
}

/** Take a message out of the queue. */
export interface RemoveQueued {
  type: "remove_queued";
  ref?: string | null;
  queued_id: string;
}

/** Send a queued message now. It interrupts the running turn. */
export interface SendQueued {
  type: "send_queued";
  ref?: string | null;
  queued_id: string;
}

/** Decide what becomes of a tool call whose outcome is unknown. */
export interface Resolve {
  type: "resolve";
  ref?: string | null;
  tool_call_id: string;
  resolution: Resolution;
  note?: string;
}

/** Stop a turn. */
export interface Stop {
  type: "stop";
  ref?: string | null;
  turn_id: string;
}

/** Try a failed, stopped or interrupted turn again. */
export interface Retry {
  type: "retry";
  ref?: string | null;
  turn_id: string;
}

/** Approve or refuse a tool call that waits for approval. */
export interface Decide {
  type: "decide";
  ref?: string | null;
  tool_call_id: string;
  decision: "approve" | "refuse";
  /** Of an approval: the arguments, if you edited them. */
  arguments?: JsonObject | null;
  /** Why. The log keeps it, and after a refusal the model reads it. */
  note?: string;
  /** Of an approval: let this tool run without asking from now on, in this conversation or everywhere. */
  remember?: Remember;
}

/** Answer what a server asks during a call. */
export interface AnswerInput {
  type: "answer_input";
  ref?: string | null;
  input_request_id: string;
  action: InputAction;
  /** The values of an accepted form. */
  content?: JsonObject | null;
}

/** Ask whether the connection still works. */
export interface Ping {
  type: "ping";
  ref?: string | null;
}

/** Say that you have read everything up to this `check`. */
export interface Ack {
  type: "ack";
  ref?: string | null;
  number: number;
}

/** A conversation as it stands. It replaces whatever you have of this conversation. */
export interface Snapshot {
  type: "snapshot";
  conversation_id: string;
  /** The number of the newest event that the snapshot contains. */
  seq: number;
  conversation: Conversation;
  /**
   * All of them, oldest first. Of a conversation with more than 60 the last 40 of the shown path, with those
   * beside them as outlines; `GET /api/messages/<id>/older/` gives what was said before.
   */
  messages: Message[];
  turns: Turn[];
  tool_calls: ToolCall[];
  queue: QueuedMessage[];
  artifacts: Artifact[];
  /** The newest 200, oldest first. */
  input_requests: InputRequest[];
  /** Your command's, if it answers one. Trellis also sends snapshots on its own, when events were lost. */
  ref: string | null;
}

/** Answers `subscribe`: you have everything up to this number already, so no snapshot follows. */
export interface Current {
  type: "current";
  ref: string | null;
  conversation_id: string;
  seq: number;
}

/** A message was added or changed. While it streams, the deltas after it extend its texts. */
export interface MessageSaved {
  type: "message.saved";
  conversation_id: string;
  seq: number;
  message: Message;
}

/** A turn (the work on one answer) began, changed its status, or ended. */
export interface TurnChanged {
  type: "turn.changed";
  conversation_id: string;
  seq: number;
  turn: Turn;
}

/** A tool call was proposed, waits for approval or input, runs, or ended. */
export interface ToolCallChanged {
  type: "tool_call.changed";
  conversation_id: string;
  seq: number;
  tool_call: ToolCall;
}

/** The title, the shown branch, the status or the usage changed. */
export interface ConversationChanged {
  type: "conversation.changed";
  conversation_id: string;
  seq: number;
  conversation: Conversation;
}

/** A server asks the person something during a call, or the question was settled. */
export interface InputRequestChanged {
  type: "input_request.changed";
  conversation_id: string;
  seq: number;
  input_request: InputRequest;
}

/** The messages that wait for the running turn changed. All of them are listed. */
export interface QueueChanged {
  type: "queue.changed";
  conversation_id: string;
  seq: number;
  queue: QueuedMessage[];
}

/** A file was added, changed, renamed, deleted or brought back. */
export interface ArtifactChanged {
  type: "artifact.changed";
  conversation_id: string;
  seq: number;
  artifact: Artifact;
}

/** A piece of a streaming message's text. */
export interface TextDelta {
  type: "text.delta";
  conversation_id: string;
  message_id: string;
  /**
   * Length of the text before this piece, in UTF-16 code units. Skip what you have; if there is a gap,
   * subscribe again.
   */
  offset: number;
  text: string;
}

/**
 * A piece of what the model thinks before it speaks. It works like `text.delta`, on the message's
 * `reasoning`.
 */
export interface ReasoningDelta {
  type: "reasoning.delta";
  conversation_id: string;
  message_id: string;
  /** Length of the reasoning before this piece, in UTF-16 code units. */
  offset: number;
  text: string;
}

/** How far a running tool call is, as its server says. */
export interface ToolCallProgress {
  type: "tool_call.progress";
  conversation_id: string;
  tool_call_id: string;
  progress: number;
  /** What `progress` counts up to; null if the server does not say. */
  total: number | null;
  message: string | null;
}

/** Your command was carried out. What it changed comes as events. */
export interface Accepted {
  type: "accepted";
  /** The `ref` of your command. */
  ref: string | null;
  /** Of `send` and `edit_message`: the new message. */
  message_id?: string;
  /** Of `send`, `edit_message` and `regenerate`: the turn that began. */
  turn_id?: string;
  /** Of `send`: the message waits in the queue under this id. */
  queued_id?: string;
}

/** Your command was not carried out. */
export interface CommandFailed {
  type: "error";
  /** The `ref` of your command; null if the message could not be read. */
  ref: string | null;
  /** For programs; see Errors. */
  code: string;
  /** For people. */
  message: string;
  /** What is wrong with each field of the command, where that is known. */
  details?: { [key: string]: string[] };
}

/** Something in the workspace changed. Fetch it again over REST if you show it. */
export interface WorkspaceChanged {
  type: "workspace.changed";
  /**
   * What changed, such as `conversation.changed`, `bud.changed`, `server.changed` or `request.changed`.
   * `server.checked` is a health check that changed no status.
   */
  kind: string;
  /** The id of the row. */
  id: string;
}

/** Trellis asks whether you still read. Answer at once with `ack` and the same number. */
export interface Check {
  type: "check";
  number: number;
}

/** Answers `ping`. */
export interface Pong {
  type: "pong";
  ref: string | null;
}

/** What the application knows before its first request. */
export interface Boot {
  user: BootUser;
  workspace: BootWorkspace;
  workspaces: WorkspaceLink[];
  conversation_id: string | null;
  is_kept: boolean;
  urls: BootUrls;
  remembers_permissions: boolean;
  allows_public_links: boolean;
  csrf_token: string;
  demo_model: boolean;
  max_file_bytes: number;
  max_message_characters: number;
  max_frame_bytes: number;
  server_icons: { [key: string]: string };
  deleted_days: number;
  temporary_hours: number;
  messages: BootMessage[];
}

export interface AddableServer {
  id: string;
  name: string;
  scope: string;
  status: string;
}

/** What the tool's server says about it; null or absent where it says nothing. */
export interface Annotations {
  read_only?: boolean | null;
  destructive?: boolean | null;
  idempotent?: boolean | null;
  open_world?: boolean | null;
}

export interface Approval {
  rule: string;
  reason: string;
  /** Whose access the call would use, as long as it waits. */
  credential: "workspace" | "personal" | null;
  expires_at: string | null;
  decision: "approved" | "refused" | null;
  decided_by: string | null;
  decided_at: string | null;
  note: string | null;
  edited: boolean;
  can_remember: boolean;
  /** Only an admin or owner who did not ask for it may allow it. */
  needs_second_person: boolean;
  /** The call rule that asks. */
  call_rule: NamedRef | null;
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
  | "document"
  | "binary";

/** A version of a file, as a tool call names it. */
export interface ArtifactRef {
  id: string;
  name: string;
  version: number;
  kind: ArtifactKind;
  content_type: string;
  size: number;
}

/** One version of a file, without its content. */
export interface ArtifactVersion {
  number: number;
  kind: ArtifactKind;
  /** Found in the content itself. */
  content_type: string;
  size: number;
  sha256: string;
  origin: "model" | "tool" | "upload" | "edit" | "restore";
  made_by: string | null;
  tool_call_id: string | null;
  message_id: string | null;
  created_at: string;
}

/** One version of a file of the conversation. */
export interface AttachedFile {
  id: string;
  name: string;
  version: number;
  kind: ArtifactKind;
  content_type: string;
  size: number;
  sha256: string;
}

/** A resource or a file that was attached, and what was read of it. */
export interface Attachment {
  id: string;
  /** Null for a file. */
  server: ServerName | null;
  /** Null for a resource. */
  file: AttachedFile | null;
  resource_id: string | null;
  uri: string;
  title: string;
  mime_type: string;
  status: "queued" | "ready" | "failed";
  /** Why it could not be read. Of one that is ready: what is missing of it. */
  error: string | null;
  /** The beginning of what a resource said. `GET attachments/{id}/` gives all of it. */
  preview: string;
  /** Bytes of that. Null: a file, or not known. */
  size: number | null;
  read_at: string | null;
  changed_at: string | null;
}

/** All that was read of a resource; nothing of a file, which has its own address. */
export interface AttachmentContent {
  id: string;
  content: ContentPart[];
}

/** What became of something on a page that led here. */
export interface BootMessage {
  tone: "ok" | "bad" | "info";
  text: string;
}

/** Null: not for this person. */
export interface BootUrls {
  workspaces: string | null;
  servers: string;
  server_icons: string;
  add_server: string | null;
  connections: string;
  audit: string | null;
  notices: string;
  requests: string;
  admin: string | null;
  providers: string | null;
  own_model: string | null;
  buds: string;
  reminders: string;
  permissions: string;
  call_rules: string | null;
  shared_chats: string;
  settings: string;
  password: string;
  tokens: string;
  shortcuts: string;
  activity: string;
  platform_audit: string | null;
  confirm_address: string | null;
  logout: string;
  api: string;
  socket: string;
}

export interface BootUser {
  id: string;
  email: string;
  name: string;
  picture: string;
}

export interface BootWorkspace {
  id: string;
  slug: string;
  name: string;
  role: string;
  is_auditor: boolean;
  can_manage_buds: boolean;
  decides_requests: boolean;
}

/** A bud; its servers are those of this workspace that it names. */
export interface Bud {
  id: string;
  slug: string;
  name: string;
  description: string;
  /** One emoji. */
  avatar: string;
  system_prompt: string;
  starter_prompts: string[];
  provider_id: string | null;
  model: BudModel;
  parameters: JsonObject;
  mcp_config: JsonObject;
  servers: BudServer[];
  /** Why some of its servers or tools cannot be used now, in sentences; null in lists. */
  problems: string[] | null;
  tool_protocol: "auto" | "native" | "fenced_json";
  /** Offers tools to create and change files of the conversation. */
  makes_artifacts: boolean;
  /**
   * Uses the servers below and every server of the workspace that is meant for all buds, also those added
   * later.
   */
  takes_all_tools: boolean;
  /** People cannot choose another model in their chats with this bud. */
  is_model_fixed: boolean;
  is_archived: boolean;
  colour: "grey" | "green" | "blue" | "violet" | "pink" | "red" | "orange" | "yellow";
  visibility: "workspace" | "owner";
  /** Every member may change this bud. Otherwise only administrators may. */
  members_may_edit: boolean;
  version: number;
  created_at: string;
  updated_at: string;
}

export interface BudBrief {
  id: string;
  slug: string;
  name: string;
  avatar: string;
}

/** A check of a bud. */
export interface BudCheck {
  question: string;
  calls?: ExpectedCallShape[];
  contains?: string[];
  /** Words that the answer must not have. */
  excludes?: string[];
  /** A sentence that the bud's model judges the answer by. */
  criterion?: string;
  recordings?: RecordingShape[];
  id: string;
  bud_id: string;
  /** Grows with each change. */
  version: number;
}

export interface BudModel {
  name: string;
  /** Null: the platform's own. */
  provider_id: string | null;
  is_demo: boolean;
}

export interface BudServer {
  id: string;
  name: string;
  status: string;
}

/** What becomes of a call whose outcome is not known. */
export interface CallResolution {
  due_at: string | null;
  note: string | null;
}

/** When a bud's checks run by themselves, and with whose rights. */
export interface CheckPlan {
  /** A change is saved only after they have passed with it, unless somebody insists. */
  before_saving?: boolean;
  /** Empty: never. */
  every?: "day" | "week" | "";
  /** Empty: they do not run on a schedule. */
  person: string;
  next_at: string | null;
  /** Why they did not run when they were due. */
  trouble: string;
}

/** How one check went. */
export interface CheckResult {
  id: string;
  check_id: string | null;
  question: string;
  status: "waiting" | "running" | "judging" | "passed" | "failed" | "cancelled";
  /** Why it failed, in sentences. */
  faults: string[];
  notes: string[];
  /** Null: not yours to read. */
  answer: string | null;
  /** What the model that judged the answer said of it. Null: not yours to read. */
  judged: string | null;
  calls: CheckedCall[];
}

/** All checks of a bud, run once. */
export interface CheckRun {
  id: string;
  bud_id: string;
  /** Null: an unsaved draft. */
  version: number | null;
  status: "running" | "completed" | "cancelled";
  note: string;
  total: number;
  passed: number;
  person: string;
  /** It began by itself. */
  is_scheduled: boolean;
  /** Whether answers, arguments and results are yours to read. */
  may_read: boolean;
  created_at: string;
  finished_at: string | null;
  /** Of the answers and their verdicts. Null in lists, and as long as nothing is counted. */
  usage: Usage | null;
  /** Null in lists. */
  results: CheckResult[] | null;
}

export interface CheckedCall {
  call_id: string;
  tool: string;
  status: string;
  /** Answered from a recording, and not called. */
  is_recorded: boolean;
  /** Null: not yours to read. */
  arguments: JsonObject | null;
  result: string | null;
}

export interface ChosenModel {
  /** Null: the platform's own. */
  provider_id: string | null;
  name: string;
}

export type ContentPart = TextPart | MediaPart | ResourceLinkPart | ResourcePart;

/** How much of what the model reads is used. */
export interface Context {
  used: number;
  /** Null: not known. */
  limit: number | null;
}

export interface Conversation {
  id: string;
  title: string;
  bud: BudBrief;
  /** Answers in place of the bud's own model. */
  chosen_model: ChosenModel | null;
  folder_id: string | null;
  is_pinned: boolean;
  is_archived: boolean;
  /** Others may read it as it was when you shared it. */
  is_shared: boolean;
  /**
   * In no list and no search, and erased some hours after its last activity. `keep` makes it a usual one.
   */
  is_temporary: boolean;
  deleted_at: string | null;
  /** The message that the shown path ends with. */
  leaf_id: string | null;
  /** Of the turns whose answers stand side by side, until one is chosen. Null: none do. */
  comparison_id: string | null;
  forked_from: string | null;
  status: "idle" | "running" | "waiting";
  usage: Usage | null;
  /** When the newest answer ended that you have seen on no device. Null: you have seen all. */
  unseen_answer_at: string | null;
  created_at: string;
  updated_at: string;
}

/** What stands in a message field. */
export interface Draft {
  conversation_id: string | null;
  text: string;
  attachments: DraftAttachment[];
  written_at: string;
  /** Counts the changes. */
  version: number;
}

/** A file or a resource that was chosen, and how the page shows it. */
export interface DraftAttachment {
  /** Of a resource. */
  server_id?: string;
  /** Of a resource. */
  uri?: string;
  resource_id?: string | null;
  /** Of a file. Upload it before you send the message. */
  artifact_id?: string;
  /** Of a file, which needs one: the draft keeps it. */
  version?: number;
  title: string;
  /** Of a resource. */
  server_name?: string;
  /** Of a file. */
  kind?: string;
  /** Of a file, in bytes. */
  size?: number;
  /** Of a file: it was uploaded for this draft, and no message has it yet. */
  is_new?: boolean;
}

/** A server that is considered for a chat, and why it is or is not used. */
export interface EffectiveServer {
  id: string;
  name: string;
  scope: string | null;
  source: "required" | "bud" | "all_tools" | "conversation" | "personal";
  is_usable: boolean;
  code: string;
  reason: string;
  status: string | null;
  transport: string | null;
  /** The page on which the person can sign in, if that is missing. */
  sign_in_url: string | null;
  tools: OfferedTool[];
}

/** A tool that the bud has to call. */
export interface ExpectedCallShape {
  /** `server.tool`, or the tool's name. */
  tool: string;
  /** Those that the call has to have, among others. */
  arguments?: JsonObject;
}

/** A file of the conversation. Upload it before you send the message. */
export interface FileName {
  artifact_id: string;
  /** Without it the newest. */
  version?: number | null;
}

/** A prompt as its server filled it in; hidden characters are left out, and told of. */
export interface FilledPrompt {
  description: string;
  messages: PromptMessage[];
  warnings: string[];
}

/** A folder; `GET /api/conversations/?folder=` lists what is in it. */
export interface Folder {
  id: string;
  name: string;
  colour: "green" | "blue" | "yellow" | "red" | "purple" | "teal" | "lime" | "pink";
}

/** A place where something was found. */
export interface Found {
  /**
   * A conversation's title, a message, a file's name, or a call of a tool or an attached file of a message.
   */
  found_in: "title" | "message" | "file_name" | "call" | "file";
  /** Of the tool or the file; empty for titles and messages. */
  name: string;
  conversation_id: string;
  title: string;
  /** Of the conversation's bud: one emoji. */
  avatar: string;
  is_archived: boolean;
  message_id: string | null;
  artifact_id: string | null;
  /** Empty where it would only repeat `title`. */
  excerpt: FoundPiece[];
  at: string;
}

/** A piece of an excerpt. */
export interface FoundPiece {
  text: string;
  is_match: boolean;
}

/** What came of it; the words of MCP's elicitation. */
export type InputAction = "accept" | "decline" | "cancel";

/** What a server asked the caller during a call. */
export interface InputRequest {
  id: string;
  call_id: string;
  conversation_id: string | null;
  server: ServerName;
  tool: string;
  kind: "form" | "url" | "sampling" | "sign_in";
  message: string;
  /** The form that was asked for, as JSON schema. */
  schema: JsonObject;
  url: string;
  url_host: string;
  warnings: string[];
  /** Sampling: what the model would be asked. Sign-in: host, scopes, account (user or workspace), reason. */
  params: JsonObject;
  /** Sampling: which model. */
  model: string;
  /** Of an open sign-in. It is settled by signing in, or declined. */
  sign_in: SignIn | null;
  status: "pending" | "accepted" | "declined" | "cancelled" | "expired" | "refused";
  answer: JsonObject | null;
  expires_at: string;
  answered_at: string | null;
}

/** A file that a bud knows. */
export interface KnowledgeFile {
  id: string;
  bud_id: string;
  name: string;
  kind: ArtifactKind;
  /** Found in the content itself. */
  content_type: string;
  size: number;
  sha256: string;
  characters: number;
  lines: number;
  /** Pages, sheets, slides, chapters or headings. */
  parts: number;
  /** The file holds more than could be read. */
  is_cut: boolean;
  /** null: the bud's provider has no embedding model. */
  meaning: Meaning | null;
  added_by: string;
  created_at: string;
}

export interface KnowledgePassage {
  first_line: number;
  last_line: number;
  text: string;
}

/** Some passages of a file, as models read them. */
export interface KnowledgeText {
  file: KnowledgeFile;
  /** Of what was asked for. */
  first_line: number;
  last_line: number;
  passages: KnowledgePassage[];
  /** A line to ask for what comes before; null: it begins here. */
  before: number | null;
  /** The same for what follows. */
  after: number | null;
}

/** What one conversation changes of its bud's configuration. */
export interface McpConfigOverrides {
  additional_servers: string[];
  disabled_servers: string[];
  disabled_tools: string[];
  tool_choice: "auto" | "none" | "required" | NamedToolChoice | null;
}

/** How far a file can be searched by meaning. */
export interface Meaning {
  /** words_only: it could not be prepared, `fault` says why, and it is tried again. */
  state: "ready" | "preparing" | "words_only";
  /** Passages that are prepared. */
  done: number;
  /** Of the file; 0: not counted yet. */
  passages: number;
  fault: string;
  /** When it is tried again. */
  again_at: string | null;
}

/** A picture or a sound. */
export interface MediaPart {
  type: "image" | "audio";
  mime_type: string;
  /** Base64. */
  data: string;
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
  context_window: Context | null;
  /** The model reached the greatest length of an answer; the turn can be continued. */
  is_cut: boolean;
  /** Without its text, since another branch is shown: show its branch to read it. */
  is_outline: boolean;
  /** Of this message and all above it, where there is one. */
  summary: Summary | null;
  created_at: string;
}

/** A model; null where nobody has said. */
export interface Model {
  /** Null: the platform's own. */
  provider_id: string | null;
  name: string;
  provider_name: string;
  is_demo: boolean;
  /** How much it reads and writes at most. */
  context_tokens: number | null;
  sees_pictures: boolean | null;
  /** As an administrator says, else as its provider tells. */
  calls_tools: boolean | null;
  /** False: an administrator has said that it calls none, so it is offered none. */
  gets_tools: boolean;
  /** Whether it thinks before it answers; from the same sources. */
  reasons: boolean | null;
  /** Per million tokens. */
  prompt_price: string | null;
  /** Per million tokens. */
  completion_price: string | null;
  /**
   * The day of the provider's list that the prices are from. Null: the workspace has entered them, or there
   * are none.
   */
  prices_listed_on: string | null;
  /** The day from which its provider serves it no more, as far as Trellis knows it. */
  ends_on: string | null;
  /** Since when its provider has not listed it any more. */
  gone_since: string | null;
}

/** A model of the workspace. */
export interface ModelName {
  /** Null: the platform's own. */
  provider_id: string | null;
  name: string;
}

export interface NamedFunction {
  name: string;
}

export interface NamedRef {
  /** Null: it has been deleted. */
  id: string | null;
  name: string;
}

/** OpenAI's form of "this one tool". */
export interface NamedToolChoice {
  type: "function";
  function: NamedFunction;
}

export interface OfferedTool {
  id: string;
  name: string;
  title: string;
  description: string;
  annotations: Annotations;
  /** False: the bud or this conversation left it out, or a call rule blocks it. */
  is_on: boolean;
  /** Why a call rule lets no call of it run. Empty: none does. */
  blocked_reason: string;
}

/** A part of the shown path, oldest first, with what belongs to it; empty at the beginning. */
export interface Older {
  messages: Message[];
  turns: Turn[];
  tool_calls: ToolCall[];
}

/** A member of the workspace. */
export interface Person {
  id: string;
  name: string;
  email: string;
}

/** A pinned bud, or a pinned model. */
export interface Pin {
  /** Null: it is a model. */
  bud_id: string | null;
  /** Null: the platform's own. */
  provider_id: string | null;
  model: string;
}

export interface Prompt {
  id: string;
  server: ServerName;
  name: string;
  title: string;
  description: string;
  arguments: PromptArgument[];
}

export interface PromptArgument {
  name: string;
  title: string;
  description: string;
  required: boolean;
}

export interface PromptMessage {
  role: string;
  content: ContentPart;
}

/** A resource of a server, or a file of the conversation. */
export interface QueuedAttachment {
  server_id: string | null;
  uri: string | null;
  artifact_id: string | null;
}

/** A message that waits for the running turn to end. */
export interface QueuedMessage {
  id: string;
  conversation_id: string;
  client_id: string;
  text: string;
  attachments: QueuedAttachment[];
  /** It interrupts what runs. */
  is_next: boolean;
  /** How the turn ended after which it was not sent: only its writer sends it. Null: it waits its turn. */
  held_after: TurnStatus | null;
  /** The bud that answers in place of the conversation's. */
  bud_id: string | null;
  /** Models that answer side by side; mostly none. */
  compare: ChosenModel[];
  created_at: string;
}

/** What a person thinks of an answer. */
export type Rating = "" | "good" | "bad";

/** What a tool that may change data gives in a check, in place of being called. */
export interface RecordingShape {
  tool: string;
  /** It answers only calls with these. Empty: any. */
  arguments?: JsonObject;
  result?: string;
  is_error?: boolean;
}

/** How far a person's yes reaches. */
export type Remember = "" | "conversation" | "everywhere";

/** What a member asks for. */
export interface RequestToDecide {
  id: string;
  /** The name of who asks. */
  requester: string;
  requester_email: string;
  kind: "server" | "tool" | "other";
  name: string;
  reason: string;
  created_at: string;
  /** The page where it is looked for and set up. */
  path_to_set_up: string;
}

/** What becomes of a call whose outcome is unknown. */
export type Resolution = "run_again" | "mark_done" | "give_up";

export interface Resource {
  id: string;
  server: ServerName;
  uri: string;
  is_template: boolean;
  name: string;
  title: string;
  description: string;
  mime_type: string;
  size: number | null;
  changed_at: string | null;
}

/** A resource that the server names. */
export interface ResourceLinkPart {
  type: "resource_link";
  uri: string;
  name: string;
  mime_type?: string | null;
}

/** A resource of one of the conversation's servers. */
export interface ResourceName {
  server_id: string;
  uri: string;
  resource_id?: string | null;
}

/** A resource that the server sent along. */
export interface ResourcePart {
  type: "resource";
  uri: string;
  mime_type: string | null;
  /** Null: it is not text. */
  text: string | null;
  /** Of one that is not text. */
  sha256?: string;
}

export interface ServerName {
  id: string;
  name: string;
}

export interface Servers {
  servers: EffectiveServer[];
  addable: AddableServer[];
  /** What this chat changes of its bud. */
  overrides: McpConfigOverrides;
}

/** A conversation that others may read, as it was when it was shared. */
export interface Share {
  id: string;
  conversation_id: string;
  title: string;
  /** The page where it is read. Empty: the encryption key that protected it is gone. */
  link: string;
  audience: "people" | "workspace" | "link";
  people: Person[];
  with_files: boolean;
  with_calls: boolean;
  expires_at: string | null;
  /** False: its date has passed, or the workspace no longer allows such links. */
  is_open: boolean;
  /** When its text was last updated. */
  shared_at: string;
  end_message_id: string;
  /** Whether it ends where the chat ends that you see. */
  is_current: boolean;
  created_at: string;
}

/** Where a person signs in to the server that a call waits for. */
export interface SignIn {
  /** The page on this platform where it begins. */
  path: string;
  /** False: it is the workspace's account, which an administrator connects. */
  may_connect: boolean;
}

/** What the model reads in place of a message and all above it. */
export interface Summary {
  text: string;
  /** How many, with their answers, it stands for. */
  questions: number;
  /** False: older messages are left out where they do not fit, as without it. */
  is_used: boolean;
  /** A person has changed its text. */
  is_edited: boolean;
}

export interface TextPart {
  type: "text";
  text: string;
}

export interface ToolCall {
  id: string;
  turn_id: string;
  message_id: string;
  position: number;
  server: NamedRef | null;
  tool: ToolRef;
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
  resolution: CallResolution | null;
  /** The call in whose place this one was made. */
  repeats: string | null;
  result: ToolResult | null;
  cached_at: string | null;
  error: string | null;
  started_at: string | null;
  finished_at: string | null;
  duration_ms: number | null;
}

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

export interface ToolRef {
  /** Null: it has been deleted. */
  id: string | null;
  name: string;
  title: string;
}

export interface ToolResult {
  content: ContentPart[];
  truncated: boolean;
  structured?: Json | null;
  structured_problem?: string | null;
  cached_at?: string | null;
}

export interface Turn {
  id: string;
  conversation_id: string;
  user_message_id: string;
  status: TurnStatus;
  error: TurnError | null;
  notice: string | null;
  created_at: string;
  finished_at: string | null;
  usage: Usage | null;
  /** Which one answered. */
  model: string | null;
  /** The bud that was named in place of the conversation's. */
  bud_id: string | null;
  /** Shared by turns whose answers stand, or stood, side by side. */
  comparison_id: string | null;
  /** Its place among these; alone it is 0. */
  place: number;
  /** Of an answer beside others: the model that was asked. */
  asked_model: ChosenModel | null;
  /** How this answer was to differ from an earlier one. */
  wish: "shorter" | "longer" | "simpler" | null;
  rating: "good" | "bad" | null;
  rating_reason: string;
}

export interface TurnError {
  code: string;
  message: string;
  can_retry: boolean;
}

export type TurnStatus =
  | "queued"
  | "running"
  | "waiting_for_approval"
  | "waiting_for_input"
  | "completed"
  | "failed"
  | "cancelled"
  | "interrupted";

export interface Usage {
  prompt_tokens: number;
  /** Of the prompt's: those that came out of the provider's cache. */
  cached_tokens: number;
  completion_tokens: number;
  /** A decimal number; null: no prices are known. */
  cost: string | null;
}

/**
 * A call that waits for approval or whose outcome is unknown, a question or sign-in of a server, or what a
 * member asks for. The others are null.
 */
export interface Waiting {
  /** Null for what a member asks for, which belongs to none. */
  conversation: WaitingPlace | null;
  /** Where it stands. Calls of one message are one step. */
  message_id: string | null;
  tool_call: ToolCall | null;
  input_request: InputRequest | null;
  /** Listed for administrators; not what they ask for themselves. */
  access_request: RequestToDecide | null;
  /** Of a call that waits for a second person: the name of who asked. Its conversation is not told. */
  asked_by: string | null;
}

export interface WaitingPlace {
  id: string;
  title: string;
  avatar: string;
}

/** What becomes of a message that is sent while a turn runs. */
export type WhenBusy = "refuse" | "queue" | "interrupt";

/** How an answer that is written again shall differ from the one before. */
export type Wish = "" | "shorter" | "longer" | "simpler";

export interface WorkspaceLink {
  slug: string;
  name: string;
}
