/** The page of shortcuts, on which people choose keys of their own. */
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import common from "../texts/common";
import t from "../texts/shortcuts";
import { ShortcutGroups, Ways } from "./groups";
import { CHAT_KEYS, canBeHeld, type Keys, keysIn, type Place, type ShortcutName } from "./list";
import { keysOf, type OwnKeys, ownKeys, setOwnKeys, takenBy, USUAL } from "./own";

interface Props {
  places: readonly Place[];
  /** Keep it for the person, on all their devices; null: all as usual. Gives whether it was kept. */
  save: (choice: OwnKeys | null) => Promise<boolean>;
}

export function ShortcutEditor({ places, save }: Props) {
  const [own, setOwn] = useState(ownKeys());
  const [changing, setChanging] = useState<ShortcutName | null>(null);
  const kept = useRef(own);
  const saving = useRef(Promise.resolve());
  const show = (choice: OwnKeys) => {
    setOwnKeys(choice);
    setOwn(choice);
  };
  const keep = (next: OwnKeys) => {
    setChanging(null);
    show(next);
    const isUsual = next.is_on && Object.keys(next.keys).length === 0;
    // One after the other, so that the last choice is the one that is kept.
    saving.current = saving.current.then(async () => {
      if (await save(isUsual ? null : next)) kept.current = next;
      else if (ownKeys() === next) show(kept.current);
    });
  };
  const give = (name: ShortcutName, keys: Keys | null) => {
    const { [name]: _old, ...others } = own.keys;
    const isUsual = keys === null || keys.join() === CHAT_KEYS[name].join();
    keep({ ...own, keys: isUsual ? others : { ...others, [name]: keys } });
  };
  return (
    <>
      <div class="shortcut-switch">
        <label class="check">
          <input
            type="checkbox"
            checked={own.is_on}
            onChange={(event) => keep({ ...own, is_on: event.currentTarget.checked })}
          />
          <span>
            {t.use}
            <span class="block text-sm text-(--quiet)">{t.useHelp}</span>
          </span>
        </label>
        {Object.keys(own.keys).length > 0 && (
          <button
            type="button"
            class="btn btn-sm btn-quiet"
            onClick={() => keep({ ...USUAL, is_on: own.is_on })}
          >
            {t.resetAll}
          </button>
        )}
      </div>
      <ShortcutGroups
        places={places}
        choosing={(name) => (
          <Row
            name={name}
            isChanging={changing === name}
            isUsual={own.keys[name] === undefined}
            onChange={() => setChanging(name)}
            onCancel={() => setChanging(null)}
            onGive={(keys) => give(name, keys)}
          />
        )}
      />
    </>
  );
}

interface RowProps {
  name: ShortcutName;
  isChanging: boolean;
  isUsual: boolean;
  onChange: () => void;
  onCancel: () => void;
  /** Null: the usual ones. */
  onGive: (keys: Keys | null) => void;
}

function Row({ name, isChanging, isUsual, onChange, onCancel, onGive }: RowProps) {
  const what = t.chatKeys[name];
  if (isChanging) return <Recorder name={name} onCancel={onCancel} onGive={onGive} />;
  return (
    <>
      <Ways ways={keysOf(name).length > 0 ? [keysOf(name)] : []} />
      <button type="button" class="btn btn-xs btn-quiet" aria-label={t.changeOf(what)} onClick={onChange}>
        {t.change}
      </button>
      {!isUsual && (
        <button
          type="button"
          class="btn btn-xs btn-quiet"
          aria-label={t.resetOf(what)}
          onClick={() => onGive(null)}
        >
          {t.reset}
        </button>
      )}
    </>
  );
}

/** Takes the next keys that are pressed. Tab goes to its buttons. */
function Recorder({ name, onCancel, onGive }: Pick<RowProps, "name" | "onCancel" | "onGive">) {
  const [fault, setFault] = useState("");
  // Before it is seen: keys that are pressed at once count, too.
  useLayoutEffect(() => {
    const take = (event: KeyboardEvent) => {
      if (event.key === "Tab" || (event.target as Element).closest(".shortcut-recorder button")) return;
      event.preventDefault();
      event.stopImmediatePropagation();
      if (event.key === "Escape" && !event.shiftKey) {
        onCancel();
        return;
      }
      const keys = keysIn(event);
      if (!keys) return;
      const other = takenBy(keys, name);
      if (!canBeHeld(keys)) setFault(t.needsHeld);
      else if (other) setFault(t.taken(t.chatKeys[other]));
      else onGive(keys);
    };
    addEventListener("keydown", take, true);
    return () => removeEventListener("keydown", take, true);
  }, [name, onCancel, onGive]);
  return (
    <span class="shortcut-recorder">
      <span role="status">{fault || t.press}</span>
      <button
        type="button"
        class="btn btn-xs btn-quiet"
        aria-label={t.removeOf(t.chatKeys[name])}
        onClick={() => onGive([])}
      >
        {t.remove}
      </button>
      <button type="button" class="btn btn-xs btn-quiet" onClick={onCancel}>
        {common.cancel}
      </button>
    </span>
  );
}
