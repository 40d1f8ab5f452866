import { Fragment } from "preact";
import t from "../texts/shortcuts";
import { GROUPS, type Keys, nameOf, type Place } from "./list";

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

/** The shortcuts that work in these places. */
export function ShortcutGroups({ places }: { places: readonly Place[] }) {
  return (
    <>
      {GROUPS.filter((group) => places.includes(group.place)).map((group) => (
        <section key={group.title} class="shortcut-group" aria-label={group.title}>
          <h3>{group.title}</h3>
          <dl>
            {group.shortcuts.map(({ what, ways }) => (
              <div key={what}>
                <dt>{what}</dt>
                <dd>
                  {ways.map((keys, at) => (
                    <Fragment key={keys.join()}>
                      {at > 0 && <span>{t.or}</span>}
                      <Way keys={keys} />
                    </Fragment>
                  ))}
                </dd>
              </div>
            ))}
          </dl>
        </section>
      ))}
    </>
  );
}
