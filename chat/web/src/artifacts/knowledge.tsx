/** A file that a bud knows, at the place that an answer cites. */
import { useEffect, useRef, useState } from "preact/hooks";
import { boot } from "../app/boot";
import { messageOf } from "../app/toasts";
import common from "../texts/common";
import t from "../texts/files";
import { showHidden } from "../ui/hidden";
import { Icon } from "../ui/icon";
import type { KnowledgeText } from "../wire";
import { type KnowledgePlace, readKnowledge } from "./state";
import { kindWord, sizeWord } from "./words";

export function KnowledgeView({
  wanted,
  close,
}: {
  wanted: KnowledgePlace;
  close: preact.ComponentChildren;
}) {
  const [shown, setShown] = useState<KnowledgeText | null>(null);
  const [problem, setProblem] = useState<string | null>(null);
  const [from, setFrom] = useState<number | null>(null);
  const heading = useRef<HTMLHeadingElement>(null);
  const cited = useRef<HTMLDivElement>(null);
  const body = useRef<HTMLDivElement>(null);
  useEffect(() => setFrom(null), [wanted]);
  useEffect(() => {
    let isCurrent = true;
    setProblem(null);
    readKnowledge(from === null ? wanted : { id: wanted.id, page: null, line: from })
      .then((found) => isCurrent && setShown(found))
      .catch((error) => isCurrent && setProblem(messageOf(error)));
    return () => {
      isCurrent = false;
    };
  }, [wanted, from]);
  useEffect(() => heading.current?.focus({ preventScroll: true }), [wanted]);
  useEffect(() => {
    if (from === null) cited.current?.scrollIntoView({ block: "nearest" });
    body.current?.scrollTo({ top: 0 });
  }, [shown, from]);
  const file = shown?.file;
  const isCited = (first: number) =>
    from === null && shown !== null && (wanted.page ?? wanted.line) !== null && first <= shown.last_line;
  return (
    <>
      <header class="files-head">
        <h2 ref={heading} tabIndex={-1} class="grow truncate text-base" title={file?.name}>
          {file?.name ?? t.loadingFile}
        </h2>
        {file && (
          <a
            class="btn btn-sm btn-square btn-quiet"
            href={`/w/${boot.workspace.slug}/knowledge/${file.id}/`}
            aria-label={t.downloadOriginal}
            title={t.downloadOriginal}
          >
            <Icon name="download" />
          </a>
        )}
        {close}
      </header>
      {file && (
        <p class="files-about">{t.aboutKnowledge(kindWord(file.kind), sizeWord(file.size), file.lines)}</p>
      )}
      {problem !== null && (
        <div class="notice m-4" data-tone="bad" role="alert">
          <Icon name="alert" />
          <span>{problem}</span>
        </div>
      )}
      <div
        ref={body}
        class="files-body"
        tabIndex={0}
        role="group"
        aria-label={t.content(file?.name ?? "")}
        aria-busy={shown === null}
      >
        {shown?.before != null && (
          <button type="button" class="btn btn-sm btn-quiet m-3" onClick={() => setFrom(shown.before)}>
            {t.earlier}
          </button>
        )}
        {shown?.passages.map((passage, at) => (
          <div
            key={`${passage.first_line}-${at}`}
            ref={at === 0 ? cited : undefined}
            class="knowledge-passage"
            data-cited={isCited(passage.first_line) ? "" : undefined}
          >
            {showHidden(passage.text.replace(/\n$/, ""))}
          </div>
        ))}
        {shown?.after != null && (
          <button type="button" class="btn btn-sm btn-quiet m-3" onClick={() => setFrom(shown.after)}>
            {t.later}
          </button>
        )}
        {shown === null && problem === null && <p class="p-4 text-sm text-(--quiet)">{common.loading}</p>}
      </div>
    </>
  );
}
