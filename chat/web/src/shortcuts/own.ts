/** The keys that a person chose. The page carries them in `data-shortcuts`; saving a change is the caller's. */
import { CHAT_KEYS, isPressed, type Keys, NAMES, type ShortcutName } from "./list";

export interface OwnKeys {
  is_on: boolean;
  /** What is not named has its usual keys; no keys: it has no shortcut. */
  keys: Readonly<Partial<Record<ShortcutName, Keys>>>;
}

export const USUAL: OwnKeys = { is_on: true, keys: {} };

function read(): OwnKeys {
  try {
    return { ...USUAL, ...(JSON.parse(document.documentElement.dataset.shortcuts ?? "{}") as OwnKeys) };
  } catch {
    return USUAL;
  }
}

let own = read();

export const ownKeys = (): OwnKeys => own;

/** Have these keys from now on, on this page. */
export function setOwnKeys(next: OwnKeys): void {
  own = next;
}

export const keysOf = (name: ShortcutName): Keys => own.keys[name] ?? CHAT_KEYS[name];

/** What was pressed. */
export function pressed(event: KeyboardEvent): ShortcutName | undefined {
  if (!own.is_on) return undefined;
  return NAMES.find((name) => keysOf(name).length > 0 && isPressed(keysOf(name), event));
}

/** What has these keys already, but for one. */
export function takenBy(keys: Keys, but: ShortcutName): ShortcutName | undefined {
  return NAMES.find((name) => name !== but && keysOf(name).join() === keys.join());
}
