import { type ComponentChildren, Fragment } from "preact";
import t from "../texts/shortcuts";
import { GROUPS, type Keys, nameOf, type Place, type Shortcut, type ShortcutName } from "./list";
import { keysOf } from "./own";

const isMac = /mac|iphone|ipad/i.test(navigator.platform);

function Way({ keys }: { keys: Keys }) {
  return (
    <span class="flex gap-1">
      {keys.map((key) => {
        const name = nameOf(key, isMac);
        const spoken = t.spoken[name];
        return (
          <kbd key={key} class="kbd-key">
            {spoken ? (
              <>
                <span aria-hidden="true">{name}</span>
                <span class="sr-only">{spoken}</span>
              </>
            ) : (
              name
            )}
          </kbd>
        );
      })}
    </span>
  );
}

/** One of these. */
export function Ways({ ways }: { ways: readonly Keys[] }) {
  if (ways.length === 0) return <span>{t.noKeys}</span>;
  return (
    <>
      {ways.map((keys, at) => (
        <Fragment key={keys.join()}>
          {at > 0 && <span>{t.or}</span>}
          <Way keys={keys} />
        </Fragment>
      ))}
    </>
  );
}

function waysOf({ ways, name }: Shortcut): readonly Keys[] {
  if (!name) return ways;
  return [keysOf(name)].filter((keys) => keys.length > 0);
}

interface Props {
  places: readonly Place[];
  /** What stands in place of the keys that people may choose, in the group of the chat. */
  choosing?: (name: ShortcutName) => ComponentChildren;
}

/** The shortcuts that work in these places. */
export function ShortcutGroups({ places, choosing }: Props) {
  return (
    <>
      {GROUPS.filter((group) => places.includes(group.place)).map((group) => (
        <section key={group.title} class="shortcut-group" aria-label={group.title}>
          <h3>{group.title}</h3>
          <dl>
            {group.shortcuts.map((shortcut) => (
              <div key={shortcut.what}>
                <dt>{shortcut.what}</dt>
                <dd>
                  {choosing && shortcut.name && group.place === "chat" ? (
                    choosing(shortcut.name)
                  ) : (
                    <Ways ways={waysOf(shortcut)} />
                  )}
                </dd>
              </div>
            ))}
          </dl>
        </section>
      ))}
    </>
  );
}
