/** Rows of the wire contract for tests, complete and valid; each test changes what it is about. */
import type { Approval, Conversation, InputRequest, Message, Snapshot, ToolCall, Turn } from "../src/wire";

export const CONVERSATION = "00000000-0000-7000-8000-000000000001";

export function conversation(over: Partial<Conversation> = {}): Conversation {
  return {
    id: CONVERSATION,
    title: "Orders",
    chosen_model: null,
    bud: { id: "b1", slug: "clerk", name: "Clerk", avatar: "🌿" },
    folder_id: null,
    is_pinned: false,
    is_archived: false,
    is_shared: false,
    is_temporary: false,
    deleted_at: null,
    leaf_id: null,
    comparison_id: null,
    forked_from: null,
    status: "idle",
    usage: null,
    unseen_answer_at: null,
    created_at: "2026-11-21T08:00:00Z",
    updated_at: "2026-11-21T08:00:00Z",
    ...over,
  };
}

export function message(over: Partial<Message> = {}): Message {
  return {
    id: "m1",
    conversation_id: CONVERSATION,
    turn_id: "t1",
    parent_id: null,
    role: "assistant",
    step: 0,
    text: "",
    reasoning: "",
    status: "streaming",
    client_id: null,
    attachments: [],
    usage: null,
    context_window: null,
    is_cut: false,
    is_outline: false,
    summary: null,
    created_at: "2026-11-21T08:00:01Z",
    ...over,
  };
}

export function turn(over: Partial<Turn> = {}): Turn {
  return {
    id: "t1",
    conversation_id: CONVERSATION,
    user_message_id: "u1",
    status: "running",
    error: null,
    notice: null,
    created_at: "2026-11-21T08:00:00Z",
    finished_at: null,
    usage: null,
    model: null,
    bud_id: null,
    comparison_id: null,
    place: 0,
    asked_model: null,
    wish: null,
    rating: null,
    rating_reason: "",
    ...over,
  };
}

export function toolCall(over: Partial<ToolCall> = {}): ToolCall {
  return {
    id: "c1",
    turn_id: "t1",
    message_id: "m1",
    position: 0,
    server: { id: "s1", name: "shop" },
    tool: { id: "o1", name: "find_orders", title: "Find orders" },
    builtin: null,
    artifact: null,
    annotations: { read_only: true, destructive: null, idempotent: null, open_world: null },
    arguments: { customer: "Acme" },
    proposed_arguments: { customer: "Acme" },
    input_schema: null,
    status: "running",
    approval: null,
    resolution: null,
    repeats: null,
    result: null,
    cached_at: null,
    error: null,
    started_at: "2026-11-21T08:00:02Z",
    finished_at: null,
    duration_ms: null,
    ...over,
  };
}

export function inputRequest(over: Partial<InputRequest> = {}): InputRequest {
  return {
    id: "i1",
    call_id: "c1",
    conversation_id: CONVERSATION,
    server: { id: "s1", name: "shop" },
    tool: "find_orders",
    kind: "form",
    message: "Which year?",
    schema: { type: "object", properties: { year: { type: "integer", title: "Year" } }, required: ["year"] },
    url: "",
    url_host: "",
    warnings: [],
    params: {},
    model: "",
    sign_in: null,
    status: "pending",
    expires_at: "2099-11-21T08:00:00Z",
    answered_at: null,
    answer: null,
    ...over,
  };
}

export function snapshot(over: Partial<Snapshot> = {}): Snapshot {
  return {
    type: "snapshot",
    conversation_id: CONVERSATION,
    seq: 0,
    conversation: conversation(),
    messages: [],
    turns: [],
    tool_calls: [],
    queue: [],
    artifacts: [],
    input_requests: [],
    ref: null,
    ...over,
  };
}

export function approvalOf(over: Partial<Approval> = {}): Approval {
  return {
    rule: "effect.destructive",
    reason: "It may destroy data.",
    credential: null,
    expires_at: null,
    decision: null,
    decided_by: null,
    decided_at: null,
    note: null,
    edited: false,
    can_remember: true,
    needs_second_person: false,
    call_rule: null,
    ...over,
  };
}
