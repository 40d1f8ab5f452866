import { useState } from "preact/hooks";
import t from "../texts/calls";
import type { Json } from "../wire";
import { CopyButton } from "./copy";
import { showHidden } from "./hidden";
import { Icon } from "./icon";

const LONG = 400;
const MANY = 50;

function Leaf({ value }: { value: string | number | boolean | null }) {
  const [isWhole, setWhole] = useState(false);
  if (typeof value !== "string") return <span class="json-literal">{String(value)}</span>;
  const isLong = value.length > LONG && !isWhole;
  return (
    <span class="json-string">
      {isLong
        ? `${showHidden(value.slice(0, LONG))}…`
        : showHidden(value) || <span class="text-(--quiet)">{t.emptyText}</span>}
      {isLong && (
        <button type="button" class="link-quiet ml-1 text-xs" onClick={() => setWhole(true)}>
          {t.showAll(value.length)}
        </button>
      )}
    </span>
  );
}

function Node({ name, value, depth }: { name: string; value: Json; depth: number }) {
  const [isOpen, setOpen] = useState(depth < 3);
  const [shown, setShown] = useState(MANY);
  if (value === null || typeof value !== "object") {
    return (
      <div class="json-line">
        <span class="json-key">{showHidden(name)}</span>
        <Leaf value={value} />
      </div>
    );
  }
  const entries = Object.entries(value);
  const size = Array.isArray(value) ? t.items(entries.length) : t.fieldCount(entries.length);
  return (
    <div>
      <button type="button" class="json-toggle" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
        <Icon name={isOpen ? "chevronDown" : "chevronRight"} />
        <span class="json-key">{showHidden(name)}</span>
        <span class="text-(--quiet)">{size}</span>
      </button>
      {isOpen && (
        <div class="json-children">
          {entries.slice(0, shown).map(([key, child]) => (
            <Node key={key} name={key} value={child} depth={depth + 1} />
          ))}
          {entries.length > shown && (
            <button type="button" class="link-quiet text-xs" onClick={() => setShown(shown + 200)}>
              {t.more(entries.length - shown)}
            </button>
          )}
        </div>
      )}
    </div>
  );
}

/** Any JSON, readable: a tree of names and values, or the raw text; both can be copied. */
export function JsonView({ value, empty = t.emptyValue }: { value: Json; empty?: string }) {
  const [isRaw, setRaw] = useState(false);
  const raw = JSON.stringify(value, null, 2);
  const isEmpty = value !== null && typeof value === "object" && Object.keys(value).length === 0;
  if (isEmpty) return <p class="text-sm text-(--quiet)">{empty}</p>;
  return (
    <div class="json-box">
      <div class="json-bar">
        <button type="button" class="copy-button" aria-pressed={isRaw} onClick={() => setRaw(!isRaw)}>
          {t.raw}
        </button>
        <CopyButton text={() => raw} />
      </div>
      {isRaw ? (
        <pre class="json-raw" tabIndex={0}>
          {showHidden(raw)}
        </pre>
      ) : value !== null && typeof value === "object" ? (
        <div class="json-tree">
          {Object.entries(value).map(([key, child]) => (
            <Node key={key} name={key} value={child} depth={1} />
          ))}
        </div>
      ) : (
        <div class="json-tree">
          <Leaf value={value} />
        </div>
      )}
    </div>
  );
}
