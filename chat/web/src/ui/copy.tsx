import { useState } from "preact/hooks";
import common from "../texts/common";
import { copyText } from "./copy-text";
import { Icon } from "./icon";

export function CopyButton({ text, label = common.copy }: { text: () => string; label?: string }) {
  const [isDone, setDone] = useState(false);
  return (
    <button
      type="button"
      class="copy-button"
      onClick={async () => {
        if (!(await copyText(text()))) return;
        setDone(true);
        setTimeout(() => setDone(false), 1600);
      }}
    >
      <Icon name={isDone ? "check" : "copy"} />
      <span aria-live="polite">{isDone ? common.copied : label}</span>
    </button>
  );
}
