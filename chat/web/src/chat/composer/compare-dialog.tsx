import { useEffect, useState } from "preact/hooks";
import { boot } from "../../app/boot";
import { compareAnswer, regenerate } from "../../store/commands";
import answers from "../../texts/answers";
import choosing from "../../texts/choosing";
import common from "../../texts/common";
import t from "../../texts/comparing";
import { Dialog } from "../../ui/dialog";
import { Icon } from "../../ui/icon";
import type { ChosenModel, Model, Turn } from "../../wire";
import { answeringBud, loadModels, models, modelsProblem } from "./choice";
import { factsOf, isOfBud, isSameModel, matchingModels, otherModels } from "./choices";
import { type Comparing, compareNext, firstChoice, MOST_COMPARED } from "./comparing";

const SEARCH_FROM = 8;
const named = ({ provider_id, name }: ChosenModel): ChosenModel => ({ provider_id, name });

function Face({ model }: { model: Model }) {
  const bud = answeringBud.value;
  const facts = factsOf(model);
  if (bud && isOfBud(model, bud)) facts.unshift(choosing.ownModel);
  return (
    <span class="min-w-0 grow text-left">
      <span class="block truncate">
        {model.name} <span class="text-xs text-(--quiet)">{model.provider_name}</span>
      </span>
      {facts.length > 0 && <span class="block truncate text-xs text-(--quiet)">{facts.join(" · ")}</span>}
    </span>
  );
}

/** Why nothing can be compared here; empty: it can. */
function hindrance(all: readonly Model[]): string {
  const bud = answeringBud.value;
  if (bud?.is_model_fixed) return t.fixed(bud.name);
  return all.length < 2 ? t.oneModel : "";
}

function Search({ typed, onType }: { typed: string; onType: (typed: string) => void }) {
  return (
    <input
      type="search"
      aria-label={t.search}
      placeholder={t.search}
      value={typed}
      onInput={(event) => onType(event.currentTarget.value)}
    />
  );
}

/** Two or three for the next message: boxes to tick, and one button. */
function ForMessage({ draft, all, onClose }: { draft: string; all: Model[]; onClose: () => void }) {
  const [typed, setTyped] = useState("");
  const [chosen, setChosen] = useState(() => firstChoice(draft, all));
  const isFull = chosen.length >= MOST_COMPARED;
  const shown = matchingModels(all, typed);
  const toggle = (model: Model, isIn: boolean) => {
    const others = chosen.filter((one) => !isSameModel(one, model));
    setChosen(isIn ? [...others, named(model)] : others);
  };
  return (
    <form
      class="compare-form"
      onSubmit={(event) => {
        event.preventDefault();
        if (chosen.length < 2) return;
        compareNext(draft, chosen);
        onClose();
      }}
    >
      <p class="text-sm text-(--quiet)">{t.about}</p>
      {all.length > SEARCH_FROM && <Search typed={typed} onType={setTyped} />}
      <fieldset class="compare-list">
        <legend class="sr-only">{t.title}</legend>
        {shown.length === 0 && <p class="text-sm text-(--quiet)">{t.noMatches(typed)}</p>}
        {shown.map((model) => {
          const isIn = chosen.some((one) => isSameModel(one, model));
          return (
            <label key={`${model.provider_id}/${model.name}`} class="check compare-row">
              <input
                type="checkbox"
                checked={isIn}
                disabled={!isIn && isFull}
                onChange={(event) => toggle(model, event.currentTarget.checked)}
              />
              <Face model={model} />
            </label>
          );
        })}
      </fieldset>
      <div class="dialog-foot flex flex-wrap items-center gap-2">
        <span class="grow text-xs text-(--quiet)" role="status">
          {t.chosen(chosen.length)}. {isFull ? t.full : t.chooseTwo}
        </span>
        <button type="button" class="btn btn-sm btn-quiet" onClick={onClose}>
          {common.cancel}
        </button>
        <button type="submit" class="btn btn-sm btn-primary" disabled={chosen.length < 2}>
          {t.doCompare(chosen.length)}
        </button>
      </div>
    </form>
  );
}

interface OtherModelProps {
  turn: Turn;
  isInPlace: boolean;
  all: Model[];
  onClose: () => void;
}

/** Another model answers, beside an answer or in place of it: a click, and it begins. */
function OtherModel({ turn, isInPlace, all, onClose }: OtherModelProps) {
  const [typed, setTyped] = useState("");
  const others = otherModels(all, turn.model);
  const shown = matchingModels(others, typed);
  return (
    <div class="compare-form">
      <p class="text-sm text-(--quiet)">{isInPlace ? answers.withModelAbout : t.withAbout}</p>
      {others.length > SEARCH_FROM && <Search typed={typed} onType={setTyped} />}
      <ul class="compare-list">
        {shown.length === 0 && <li class="text-sm text-(--quiet)">{t.noMatches(typed)}</li>}
        {shown.map((model) => (
          <li key={`${model.provider_id}/${model.name}`}>
            <button
              type="button"
              class="menu-item"
              onClick={() => {
                onClose();
                void (isInPlace
                  ? regenerate(turn.id, { model: named(model) })
                  : compareAnswer(turn.id, named(model)));
              }}
            >
              <Icon name="sparkles" />
              <Face model={model} />
            </button>
          </li>
        ))}
      </ul>
    </div>
  );
}

export function CompareDialog({ about, onClose }: { about: Comparing; onClose: () => void }) {
  useEffect(() => {
    void loadModels();
  }, []);
  const all = models.value;
  const why = all && hindrance(all);
  const title = "draft" in about ? t.title : about.isInPlace ? answers.withModel : t.withTitle;
  return (
    <Dialog title={title} onClose={onClose}>
      {!all && modelsProblem.value ? (
        <div class="compare-form text-sm">
          <p role="alert">{modelsProblem.value}</p>
          <button
            type="button"
            class="btn btn-sm btn-outline-quiet justify-self-start"
            onClick={() => void loadModels()}
          >
            {common.tryAgain}
          </button>
        </div>
      ) : !all ? (
        <div class="compare-form" aria-busy="true">
          <span class="sr-only">{t.loading}</span>
          <div class="skeleton-line w-11/12" />
          <div class="skeleton-line w-4/5" />
        </div>
      ) : why ? (
        <div class="compare-form text-sm">
          <p>{why}</p>
          {all.length < 2 && boot.urls.providers && (
            <a class="btn btn-sm btn-primary justify-self-start" href={boot.urls.providers}>
              {t.addModel}
            </a>
          )}
        </div>
      ) : "turn" in about ? (
        <OtherModel turn={about.turn} isInPlace={about.isInPlace ?? false} all={all} onClose={onClose} />
      ) : (
        <ForMessage draft={about.draft} all={all} onClose={onClose} />
      )}
    </Dialog>
  );
}
