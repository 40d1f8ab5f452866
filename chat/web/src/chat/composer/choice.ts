/** Who answers in the open conversation, or in the one that is about to begin. */
import { batch, computed, effect, signal } from "@preact/signals";
import { api } from "../../app/boot";
import { place } from "../../app/place";
import { messageOf, toast } from "../../app/toasts";
import { notedHome, noteHome } from "../../browser/last-chat";
import type { ChatSetting, ConversationChoice, Suggestion, ToolSetting } from "../../net/api";
import { ApiProblem } from "../../net/api";
import { isFile, type PickedResource } from "../../store/attachments";
import { archivedBuds, buds } from "../../store/buds";
import { HOME } from "../../store/draft";
import { openFolder, placeInList } from "../../store/list";
import { openState } from "../../store/open-conversation";
import { dropPicked, picked } from "../../store/picked";
import { isNextTemporary, whose } from "../../store/temporary";
import t from "../../texts/choosing";
import type {
  Bud,
  ChosenModel,
  FilledPrompt,
  McpConfigOverrides,
  Model,
  Pin,
  Prompt,
  Resource,
  Servers,
} from "../../wire";
import {
  hasOverrides,
  isOfBud,
  isPinned,
  NO_OVERRIDES,
  pinOf,
  withOverrides,
  withPin,
  withSetting,
} from "./choices";
import { afterOthers } from "./choices-under-way";

export type Chooser = "all" | "buds" | "models";
export const chooser = signal<Chooser | null>(null);

/** What the start page has chosen for the next conversation. */
const kept = notedHome(whose);
const chosenBud = signal<string | null>(kept?.bud ?? null);
const chosenModel = signal<ChosenModel | null>(kept?.model ?? null);
export const homeOverrides = signal<McpConfigOverrides>(kept?.overrides ?? NO_OVERRIDES);
effect(() =>
  noteHome(whose, {
    bud: chosenBud.value,
    model: chosenModel.value,
    overrides: homeOverrides.value,
    is_temporary: isNextTemporary.value,
  }),
);

export const homeBud = computed(
  () => buds.value?.find((bud) => bud.id === chosenBud.value) ?? buds.value?.[0],
);

/** The bud that answers; undefined as long as it is not known. */
export const answeringBud = computed(() => {
  if (!place.value) return homeBud.value;
  const id = openState.value?.conversation?.bud.id;
  return buds.value?.find((bud) => bud.id === id);
});

/** The chat's own bud, where it is archived or no longer for this person. */
export const goneBud = computed(() => {
  const bud = openState.value?.conversation?.bud;
  return place.value && bud && buds.value && !answeringBud.value ? bud : null;
});

export function goneInWords({ id, name }: { id: string; name: string }): string {
  return archivedBuds.value.includes(id) ? t.archived(name) : t.gone(name);
}

/** The model that was chosen; null: the bud's own. */
export const answeringModel = computed(() =>
  place.value ? (openState.value?.conversation?.chosen_model ?? null) : chosenModel.value,
);

export const models = signal<Model[] | null>(null);
/** Why they are not known; null: they are, or are asked for. */
export const modelsProblem = signal<string | null>(null);
export const pins = signal<Pin[]>([]);

/** Counts what was pinned here: an answer from before must not undo it. */
let changes = 0;

export async function loadPins(): Promise<void> {
  const before = changes;
  try {
    const found = await api.pins();
    if (before === changes) pins.value = found;
  } catch {
    // Without them the choice is in its usual order.
  }
}

/** Shown at once, and taken back where it cannot be kept. */
export async function togglePin(one: Bud | Model): Promise<void> {
  const before = pins.value;
  changes += 1;
  const isIn = !isPinned(one, before);
  pins.value = withPin(before, pinOf(one), isIn);
  try {
    pins.value = await api.setPin(pinOf(one), isIn);
  } catch (error) {
    pins.value = before;
    toast(messageOf(error), "bad");
  }
}

export async function loadModels(): Promise<void> {
  try {
    models.value = await api.models();
    modelsProblem.value = null;
  } catch (error) {
    modelsProblem.value = messageOf(error);
    toast(messageOf(error), "bad");
  }
}

export function chooseHomeBud(id: string): void {
  if (id === (homeBud.value?.id ?? chosenBud.value)) return;
  batch(() => {
    chosenBud.value = id;
    chosenModel.value = null;
    homeOverrides.value = NO_OVERRIDES;
  });
  void dropUnusable();
}

/** Where the next conversation stands: in no list, or in the folder that is open in the sidebar. */
export function homePlace(): Partial<ConversationChoice> {
  if (isNextTemporary.value) return { is_temporary: true };
  return openFolder.value === null ? {} : { folder_id: openFolder.value };
}

/** What the next conversation with this bud begins with. */
export function homeChoice(bud: Bud): Partial<ConversationChoice> {
  const where = homePlace();
  if (bud.id !== homeBud.value?.id) return where;
  return {
    ...where,
    ...(chosenModel.value && { model: chosenModel.value }),
    ...(hasOverrides(homeOverrides.value) && { mcp_config_overrides: homeOverrides.value }),
  };
}

/** Choose anew. A chat that was to be temporary still is. */
export function forgetHomeChoice(): void {
  batch(() => {
    chosenModel.value = null;
    homeOverrides.value = NO_OVERRIDES;
  });
}

async function change(body: Parameters<typeof api.changeConversation>[1]): Promise<void> {
  const id = place.value;
  if (!id) return;
  try {
    placeInList(await afterOthers(id, () => api.changeConversation(id, body)));
  } catch (error) {
    toast(messageOf(error), "bad");
  }
}

export async function chooseBud(bud: Bud): Promise<void> {
  if (bud.id === answeringBud.value?.id) return;
  if (place.value) await change({ bud_id: bud.id });
  else chooseHomeBud(bud.id);
}

export async function chooseModel(model: Model): Promise<void> {
  const bud = answeringBud.value;
  const chosen = bud && isOfBud(model, bud) ? null : { provider_id: model.provider_id, name: model.name };
  if (place.value) await change({ model: chosen });
  else chosenModel.value = chosen;
}

/** The chat, or without one the chat that is about to begin; null: no bud is there yet. */
function settingOf(conversationId: string | undefined): ChatSetting | null {
  if (conversationId) return { conversation: conversationId };
  return homeBud.value ? { bud: homeBud.value.id, overrides: homeOverrides.value } : null;
}

/** The servers of a chat, or of the one that is about to begin. */
export async function loadServers(conversationId: string | undefined): Promise<Servers | null> {
  const at = settingOf(conversationId);
  if (!at) return null;
  const found = await api.serversOf(at);
  return "overrides" in at ? withOverrides(found, at.overrides) : found;
}

/** What the next message can take along from servers. */
export async function findResources(conversationId: string | undefined, search: string): Promise<Resource[]> {
  const at = settingOf(conversationId);
  return at ? api.resources(at, search) : [];
}

/** The prompts of a chat's servers. */
export async function findPrompts(conversationId: string | undefined, search: string): Promise<Prompt[]> {
  const at = settingOf(conversationId);
  return at ? api.prompts(at, search) : [];
}

/** A prompt as its server fills it in. */
export async function fillPrompt(
  conversationId: string | undefined,
  prompt: Prompt,
  values: Record<string, string>,
): Promise<FilledPrompt> {
  const at = settingOf(conversationId);
  if (!at) throw new ApiProblem(0, "no_bud", t.noBud);
  return api.fillPrompt(at, prompt.id, values);
}

/** What a server suggests for an argument. */
export async function suggest(conversationId: string | undefined, wanted: Suggestion): Promise<string[]> {
  const at = settingOf(conversationId);
  return at ? api.complete(at, wanted) : [];
}

/** Take out what was taken along from servers that the next chat does not use, since another bud or choice came. */
async function dropUnusable(): Promise<void> {
  const ofServers = (picked.value[HOME] ?? []).filter((one): one is PickedResource => !isFile(one));
  if (ofServers.length === 0) return;
  try {
    const usable = new Set(
      (await loadServers(undefined))?.servers.filter((one) => one.is_usable).map(({ id }) => id),
    );
    for (const one of ofServers) {
      if (usable.has(one.server_id)) continue;
      dropPicked(HOME, one);
      toast(t.takenOut(one.title, one.server_name), "bad");
    }
  } catch (error) {
    toast(messageOf(error), "bad");
  }
}

/**
 * Change one server, tool or choice of a chat, or of the one that is about to begin; what other tabs changed stays.
 *
 * @returns what it uses then.
 */
export async function changeTools(
  conversationId: string | undefined,
  what: ToolSetting,
  now: Servers | null = null,
): Promise<Servers | null> {
  if (conversationId) return afterOthers(conversationId, () => api.changeTools(conversationId, what));
  homeOverrides.value = withSetting(homeOverrides.value, what, now?.servers ?? []);
  await dropUnusable();
  return loadServers(undefined);
}
