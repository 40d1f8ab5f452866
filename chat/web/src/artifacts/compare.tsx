import { useEffect, useMemo, useState } from "preact/hooks";
import { messageOf } from "../app/toasts";
import t from "../texts/files";
import { Icon } from "../ui/icon";
import type { Artifact, ArtifactVersion } from "../wire";
import { type DiffLine, diffLines, folded } from "./diff";
import { textOf } from "./state";
import { isReadable } from "./words";

const MOST_LINES = 3_000;
const SIGN = { same: " ", added: "+", removed: "−" } as const;
const WORD = { same: "", added: t.lineAdded, removed: t.lineRemoved };

/** What changed between an earlier version and this one. */
export function Comparison(props: { file: Artifact; versions: ArtifactVersion[]; version: ArtifactVersion }) {
  const { file, versions, version } = props;
  const others = versions.filter((one) => one.number < version.number && isReadable(one.kind));
  const [wanted, setWanted] = useState<number | null>(null);
  const from = others.find((one) => one.number === wanted)?.number ?? others[0]?.number ?? null;
  const [texts, setTexts] = useState<[string, string] | null>(null);
  const [problem, setProblem] = useState<string | null>(null);
  useEffect(() => {
    if (from === null) return;
    let isCurrent = true;
    setTexts(null);
    Promise.all([textOf(file.id, from), textOf(file.id, version.number)])
      .then((found) => isCurrent && setTexts(found))
      .catch((error) => isCurrent && setProblem(messageOf(error)));
    return () => {
      isCurrent = false;
    };
  }, [file.id, from, version.number]);
  const lines = useMemo(() => (texts ? diffLines(...texts) : []), [texts]);
  const shown = useMemo(() => folded(lines), [lines]);
  const added = lines.filter((line) => line.change === "added").length;
  const removed = lines.filter((line) => line.change === "removed").length;
  return (
    <div class="files-body">
      <div class="flex flex-wrap items-center gap-2 px-4 py-2 text-sm">
        <label for="file-from">{t.comparedWith}</label>
        <select
          id="file-from"
          class="files-select"
          value={String(from)}
          onChange={(event) => setWanted(Number(event.currentTarget.value))}
        >
          {others.map((one) => (
            <option key={one.number} value={String(one.number)}>
              {t.versionNumber(one.number)}
            </option>
          ))}
        </select>
        {texts && (
          <span class="text-(--quiet)" role="status">
            {added + removed === 0 ? t.noDifference : t.changes(added, removed)}
          </span>
        )}
      </div>
      {problem && (
        <div class="notice mx-4" data-tone="bad" role="alert">
          <Icon name="alert" />
          <span>{problem}</span>
        </div>
      )}
      <div class="file-diff" tabIndex={0} role="group" aria-label={t.differences}>
        {shown.slice(0, MOST_LINES).map((line, at) =>
          line.change === "fold" ? (
            <p key={at} class="compared-fold">
              {t.equalLines(line.count)}
            </p>
          ) : (
            <Line key={at} line={line} />
          ),
        )}
        {shown.length > MOST_LINES && <p class="compared-fold">{t.moreLines(shown.length - MOST_LINES)}</p>}
      </div>
    </div>
  );
}

function Line({ line }: { line: DiffLine }) {
  return (
    <div class="compared-line" data-change={line.change}>
      <span class="compared-number" aria-hidden="true">
        {line.before ?? ""}
      </span>
      <span class="compared-number" aria-hidden="true">
        {line.after ?? ""}
      </span>
      <span aria-hidden="true">{SIGN[line.change]}</span>
      <code>
        <span class="sr-only">{WORD[line.change]}</span>
        {line.text}
      </code>
    </div>
  );
}
