import { useEffect } from "preact/hooks";
import common from "../texts/common";
import shortcuts from "../texts/shortcuts";
import { Icon } from "./icon";
import { isTouch } from "./refocus";

interface Props {
  label: string;
  placeholder: string;
  value: string;
  /** The id of the list below, and of each of its rows in order. */
  list: string;
  rows: readonly string[];
  /** Which row is marked. */
  at: number;
  /** It has the focus: whoever kept what was typed before gives it now. */
  onFocus?: () => void;
  onInput: (typed: string) => void;
  onMark: (at: number) => void;
  onChoose: () => void;
  onClose: () => void;
}

/** The head of a dialog with a list: type, mark a row with the arrow keys, take it with Enter. */
export function SearchField({ label, placeholder, value, list, rows, at, ...on }: Props) {
  const marked = rows[at];
  useEffect(() => {
    if (marked) document.getElementById(marked)?.scrollIntoView({ block: "nearest" });
  }, [marked]);
  return (
    <div class="search-head">
      <Icon name="search" />
      {/* No type "search": the browser's own cross would stand beside the one that closes. */}
      <input
        type="text"
        inputMode="search"
        enterKeyHint="search"
        class="search-input"
        placeholder={placeholder}
        aria-label={label}
        role="combobox"
        list={undefined}
        aria-expanded={rows.length > 0}
        aria-controls={list}
        aria-activedescendant={marked}
        autocomplete="off"
        autofocus
        value={value}
        onFocus={on.onFocus}
        onInput={(event) => on.onInput(event.currentTarget.value)}
        onKeyDown={(event) => {
          if (event.key === "ArrowDown" || event.key === "ArrowUp") {
            const step = event.key === "ArrowDown" ? 1 : -1;
            on.onMark(rows.length ? (at + step + rows.length) % rows.length : 0);
          } else if (event.key === "Enter") on.onChoose();
          else if (event.key === "Escape") on.onClose();
          else return;
          event.preventDefault();
        }}
      />
      {isTouch() ? (
        <button
          type="button"
          class="btn btn-sm btn-square btn-quiet"
          aria-label={common.close}
          onClick={on.onClose}
        >
          <Icon name="close" />
        </button>
      ) : (
        <button type="button" class="kbd-key" onClick={on.onClose}>
          {shortcuts.keys.escape}
        </button>
      )}
    </div>
  );
}
