import { type ComponentChildren, Fragment } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { boot } from "../../app/boot";
import { place } from "../../app/place";
import { buds } from "../../store/buds";
import { HOME } from "../../store/draft";
import { runningTurn } from "../../store/open-conversation";
import t from "../../texts/choosing";
import common from "../../texts/common";
import compareTexts from "../../texts/comparing";
import { Dialog } from "../../ui/dialog";
import { Icon } from "../../ui/icon";
import { isTouch } from "../../ui/refocus";
import { SearchField } from "../../ui/search-field";
import type { Bud, Model } from "../../wire";
import {
  answeringBud,
  answeringModel,
  type Chooser,
  chooseBud,
  chooseModel,
  chooser,
  goneBud,
  goneInWords,
  loadModels,
  loadPins,
  models,
  modelsProblem,
  pins,
  togglePin,
} from "./choice";
import {
  factsOf,
  isOfBud,
  isPinned,
  isSameModel,
  matchingBuds,
  matchingModels,
  unusableModel,
} from "./choices";
import { comparing } from "./comparing";

/** Under a chat's title: who answers. It opens the choice, where there is one. */
export function AnswerLine({ bud: named, model: used }: { bud: string; model: string | undefined }) {
  const bud = answeringBud.value;
  const words = used ? `${named} · ${used}` : named;
  if (!(bud || goneBud.value) || boot.is_kept) return <p class="chat-subtitle">{words}</p>;
  return (
    <ChoiceButton class="chat-subtitle chat-answers" bud={named} model={used ?? bud?.model.name}>
      <span class="truncate">{words}</span>
      <Icon name="chevronDown" />
    </ChoiceButton>
  );
}

/** Says who answers, and opens the choice. */
export function ChoiceChip({ class: more = "" }: { class?: string }) {
  const bud = answeringBud.value ?? goneBud.value;
  if (!bud) return null;
  const own = answeringBud.value?.model;
  const model = answeringModel.value?.name ?? own?.name;
  return (
    <ChoiceButton class={`btn btn-sm btn-quiet choice-chip ${more}`} bud={bud.name} model={model}>
      <span aria-hidden="true">{bud.avatar || "🌱"}</span>
      <span class="truncate">{bud.name}</span>
      {(own?.is_demo === false || answeringModel.value) && (
        <span class="truncate text-(--quiet) choice-model">{model}</span>
      )}
      <Icon name="chevronsUpDown" class="text-(--quiet)" />
    </ChoiceButton>
  );
}

interface ChoiceButtonProps {
  class: string;
  bud: string;
  /** Absent: nobody here knows it. */
  model: string | undefined;
  children: ComponentChildren;
}

/** Opens the choice; not while an answer is on its way. */
function ChoiceButton({ class: look, bud, model, children }: ChoiceButtonProps) {
  const isBusy = runningTurn.value !== null;
  return (
    <button
      type="button"
      class={look}
      aria-label={model ? t.change(bud, model) : t.changeGone(bud)}
      aria-haspopup="dialog"
      title={isBusy ? t.waitForAnswer : t.title}
      disabled={isBusy}
      onClick={() => {
        chooser.value = goneBud.value ? "buds" : "all";
      }}
    >
      {children}
    </button>
  );
}

type Row = { key: string; group: string; isPinned: boolean } & (
  | { bud: Bud; model?: undefined }
  | { model: Model; bud?: undefined }
);

function rowsOf(kind: Chooser, typed: string, bud: Bud | undefined): Row[] {
  const found = kind === "models" ? [] : matchingBuds(buds.value ?? [], typed);
  const fixed = kind === "buds" || bud?.is_model_fixed;
  const known = fixed ? [] : matchingModels(models.value ?? [], typed);
  const rows: Row[] = [
    ...found.map((one) => ({ ...placeOf(one, t.buds), key: `choice-bud-${one.id}`, bud: one })),
    ...known.map((one) => ({
      ...placeOf(one, t.models),
      key: `choice-model-${one.provider_id ?? ""}-${encodeURIComponent(one.name)}`,
      model: one,
    })),
  ];
  return [...rows.filter((row) => row.isPinned), ...rows.filter((row) => !row.isPinned)];
}

function placeOf(one: Bud | Model, group: string): Pick<Row, "group" | "isPinned"> {
  const pinned = isPinned(one, pins.value);
  return { group: pinned ? t.pinned : group, isPinned: pinned };
}

/** Beside its row and not in it: an option holds no buttons. */
function PinButton({ row, line }: { row: Row; line: number }) {
  const one = row.bud ?? row.model;
  return (
    <button
      type="button"
      class="btn btn-sm btn-quiet btn-square choice-pin"
      style={{ gridRow: line }}
      data-pinned={row.isPinned}
      aria-label={row.isPinned ? t.unpin(one.name) : t.pin(one.name)}
      title={row.isPinned ? t.unpin(one.name) : t.pin(one.name)}
      onClick={() => togglePin(one)}
    >
      <Icon name={row.isPinned ? "pinOff" : "pin"} />
    </button>
  );
}

function RowFace({ row, isCurrent }: { row: Row; isCurrent: boolean }) {
  const bud = answeringBud.value;
  const facts = row.model ? factsOf(row.model) : [];
  if (row.model && bud && isOfBud(row.model, bud)) facts.unshift(t.ownModel);
  return (
    <>
      <span aria-hidden="true">{row.bud ? row.bud.avatar || "🌱" : <Icon name="sparkles" />}</span>
      <span class="min-w-0 grow">
        <span class="block truncate">
          {row.bud ? row.bud.name : row.model.name}
          {row.model && <span class="text-xs text-(--quiet)"> {row.model.provider_name}</span>}
        </span>
        {(row.bud?.description || facts.length > 0) && (
          <span class="block truncate text-xs text-(--quiet)">
            {row.bud ? row.bud.description : facts.join(" · ")}
          </span>
        )}
      </span>
      {isCurrent && <Icon name="check" class="text-(--color-primary)" />}
    </>
  );
}

/** Buds and models in one list: type, arrow keys, Enter. */
export function ChooserDialog({ kind, onClose }: { kind: Chooser; onClose: () => void }) {
  const [typed, setTyped] = useState("");
  const [chosenAt, setAt] = useState(0);
  const hasChosen = useRef(false);
  const bud = answeringBud.value;
  const rows = rowsOf(kind, typed, bud);
  const isUnknown = kind !== "buds" && models.value === null;
  // The mouse may rest on a row that is filtered out.
  const at = Math.max(0, Math.min(chosenAt, rows.length - 1));
  const isCurrent = (row: Row): boolean => {
    if (row.bud) return row.bud.id === bud?.id;
    const chosen = answeringModel.value;
    return chosen ? isSameModel(row.model, chosen) : bud !== undefined && isOfBud(row.model, bud);
  };
  useEffect(() => {
    void loadModels();
    void loadPins();
  }, []);
  const unusable = unusableModel(bud, answeringModel.value, models.value);
  const choose = (row: Row | undefined) => {
    if (!row) return;
    // Back at its button, the first space of a message would open it again.
    hasChosen.current = !isTouch();
    onClose();
    void (row.bud ? chooseBud(row.bud) : chooseModel(row.model));
  };
  // Headings and rows share one grid with the pins; each group begins with its heading.
  let line = 0;
  const lines = rows.map((row, i) => {
    const isFirst = row.group !== rows[i - 1]?.group;
    line += isFirst ? 2 : 1;
    return { row, line, isFirst };
  });
  return (
    <Dialog title={t.title} isBare leadsOn={hasChosen} onClose={onClose}>
      <SearchField
        label={t.placeholder}
        placeholder={t.placeholder}
        value={typed}
        list="choices"
        rows={rows.map((row) => row.key)}
        at={at}
        onInput={(text) => {
          setTyped(text);
          setAt(0);
        }}
        onMark={setAt}
        onChoose={() => choose(rows[at])}
        onClose={onClose}
      />
      <div class="search-results" tabIndex={0} role="region" aria-label={t.title}>
        {goneBud.value && (
          <p class="px-3 py-2 text-sm" role="status">
            {goneInWords(goneBud.value)}
          </p>
        )}
        {unusable && (
          <p class="px-3 py-2 text-sm" role="status">
            {t.unusable(unusable)}
          </p>
        )}
        {rows.length === 0 && (
          <p class="p-6 text-center text-sm text-(--quiet)">
            {kind === "models" && bud?.is_model_fixed
              ? t.fixedModel(bud.name)
              : isUnknown
                ? (modelsProblem.value ?? common.loading)
                : t.noMatches(typed)}
          </p>
        )}
        <div class="choice-grid">
          <div id="choices" class="contents" role="listbox" aria-label={t.title}>
            {lines.map(({ row, line, isFirst }, i) => (
              <Fragment key={row.key}>
                {isFirst && (
                  <p class="menu-heading choice-heading" style={{ gridRow: line - 1 }} aria-hidden="true">
                    {row.group}
                  </p>
                )}
                <div
                  id={row.key}
                  class="search-row choice-row"
                  style={{ gridRow: line }}
                  role="option"
                  aria-selected={i === at}
                  onMouseMove={() => setAt(i)}
                  onClick={() => choose(row)}
                >
                  <RowFace row={row} isCurrent={isCurrent(row)} />
                </div>
              </Fragment>
            ))}
          </div>
          {lines.map(({ row, line }) => (
            <PinButton key={row.key} row={row} line={line} />
          ))}
        </div>
        {kind === "all" && bud?.is_model_fixed && (
          <p class="px-3 py-2 text-xs text-(--quiet)">{t.fixedModel(bud.name)}</p>
        )}
      </div>
      {kind !== "buds" && !bud?.is_model_fixed && (
        <button
          type="button"
          class="menu-item compare-open"
          onClick={() => {
            onClose();
            comparing.value = { draft: place.value ?? HOME };
          }}
        >
          <Icon name="columns" />
          {compareTexts.compare}
        </button>
      )}
    </Dialog>
  );
}
