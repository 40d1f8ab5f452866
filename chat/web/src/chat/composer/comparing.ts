/** Which models the next message compares, and for what the dialog is open that chooses them. */

import { computed, effect, signal } from "@preact/signals";
import { boot } from "../../app/boot";
import { noteAsked, notedAsked } from "../../browser/last-chat";
import { personal } from "../../pages/forgetting";
import { openTimeline } from "../../store/open-conversation";
import { whose } from "../../store/temporary";
import type { ComparisonItem } from "../../store/timeline";
import type { ChosenModel, Model, Turn } from "../../wire";
import { answeringBud, answeringModel, models } from "./choice";
import { isOfBud, isSameModel } from "./choices";

export const MOST_COMPARED = 3;

/** For the next message of a draft, beside the answer of a turn, or in place of it. */
export type Comparing = { draft: string } | { turn: Turn; isInPlace?: boolean };
export const comparing = signal<Comparing | null>(null);

/** The models that each draft compares. */
const chosen = signal(notedAsked<readonly ChosenModel[]>(whose, "models"));
effect(() => noteAsked(whose, "models", chosen.value));
const NONE: readonly ChosenModel[] = [];

/** Those of the next message; none: one model answers. A bud that answers with its own model alone compares none. */
export const comparedBy = (draft: string): readonly ChosenModel[] =>
  answeringBud.value?.is_model_fixed ? NONE : (chosen.value[draft] ?? NONE);

export function compareNext(draft: string, list: readonly ChosenModel[]): void {
  chosen.value = { ...chosen.value, [draft]: list };
  try {
    personal.setItem(KEY, JSON.stringify(list));
  } catch {
    // It is only what the dialog begins with next time.
  }
}

export function dropCompared(draft: string): void {
  const { [draft]: _, ...others } = chosen.value;
  chosen.value = others;
}

const KEY = `trellis.compared.${boot.user.id}.${boot.workspace.slug}`;

/** What the dialog begins with: this draft's models, else those compared last, else the one that answers. */
export function firstChoice(draft: string, known: readonly Model[]): ChosenModel[] {
  const isKnown = (one: ChosenModel) => known.some((model) => isSameModel(model, one));
  const before = [comparedBy(draft), lastCompared()].find((list) => list.length > 1 && list.every(isKnown));
  if (before) return before.slice(0, MOST_COMPARED);
  const bud = answeringBud.value;
  const own = known.find((model) =>
    answeringModel.value ? isSameModel(model, answeringModel.value) : bud && isOfBud(model, bud),
  );
  return own ? [{ provider_id: own.provider_id, name: own.name }] : [];
}

function lastCompared(): ChosenModel[] {
  try {
    const kept: unknown = JSON.parse(personal.getItem(KEY) ?? "[]");
    return Array.isArray(kept) ? kept.filter((one) => typeof one?.name === "string") : [];
  } catch {
    return [];
  }
}

/** The answers that stand side by side at the end of the open conversation. */
export const openComparison = computed(
  () => openTimeline.value.find((item): item is ComparisonItem => item.kind === "comparison") ?? null,
);

/** What the model of a compared answer is called, and whose it is. */
export function nameOfAnswer(turn: Turn | null): { name: string; provider: string } {
  const asked = turn?.asked_model;
  const known = asked && models.value?.find((model) => isSameModel(model, asked));
  return { name: asked?.name ?? turn?.model ?? "", provider: known?.provider_name ?? "" };
}
