/** One version of a file, as its kind is looked at. Nothing of it runs in our page: what could, runs in a closed frame. */
import { useEffect, useMemo, useState } from "preact/hooks";
import { messageOf } from "../app/toasts";
import { isDark } from "../browser/theme";
import { colours } from "../markdown/code";
import { Markdown } from "../markdown/markdown";
import common from "../texts/common";
import t from "../texts/files";
import { filled } from "../texts/language";
import { CopyButton } from "../ui/copy";
import { showHidden } from "../ui/hidden";
import { Icon } from "../ui/icon";
import { JsonView } from "../ui/json-tree";
import type { Artifact, ArtifactVersion, Json } from "../wire";
import { parseTable } from "./csv";
import { downloadPath, previewPath, readingOf, textOf } from "./state";
import { isDocument, isReadable, languageOf, mayRun } from "./words";

const MOST_CHARACTERS = 300_000;

interface Props {
  file: Artifact;
  version: ArtifactVersion;
  isSource: boolean;
}

export function Content({ file, version, isSource }: Props) {
  if (version.kind === "image") return <Picture file={file} version={version} />;
  if (!isReadable(version.kind) && !isDocument(version.kind))
    return <OnlyDownload file={file} version={version} />;
  if (!isSource && (version.kind === "html" || version.kind === "svg")) {
    return <Frame file={file} version={version} />;
  }
  return <Text file={file} version={version} isSource={isSource} />;
}

/** Versions whose scripts the person has started. */
const started = new Set<string>();

/**
 * A page of somebody's, in a frame without our origin: it reaches neither us nor the network. Its scripts run once the
 * person wants them to, for there is one way out that no browser lets a page forbid (WebRTC).
 */
function Frame({ file, version }: { file: Artifact; version: ArtifactVersion }) {
  const key = `${file.id}/${version.number}`;
  const [isStarted, setStarted] = useState(started.has(key));
  const [hasScripts, setScripts] = useState(false);
  const theme = useTheme();
  useEffect(() => {
    if (version.kind !== "html") return;
    let isCurrent = true;
    textOf(file.id, version.number)
      .then((text) => isCurrent && setScripts(mayRun(text)))
      .catch(() => undefined); // then there is nothing to start
    return () => {
      isCurrent = false;
    };
  }, [file.id, version.number, version.kind]);
  return (
    <>
      {hasScripts && (
        <div class="files-scripts">
          <span class="grow">{isStarted ? t.scriptsRun : t.hasScripts}</span>
          {!isStarted && (
            <button
              type="button"
              class="btn btn-xs btn-outline-quiet"
              onClick={() => {
                started.add(key);
                setStarted(true);
              }}
            >
              {t.runScripts}
            </button>
          )}
        </div>
      )}
      <iframe
        key={String(isStarted)}
        class="file-frame"
        title={t.previewOf(file.name)}
        sandbox={isStarted ? "allow-scripts" : ""}
        referrerpolicy="no-referrer"
        src={`${previewPath(file.id, version.number)}?theme=${theme}`}
      />
    </>
  );
}

function useTheme(): "dark" | "light" {
  const [dark, setDark] = useState(isDark);
  useEffect(() => {
    const look = () => setDark(isDark());
    addEventListener("trellis:theme", look);
    return () => removeEventListener("trellis:theme", look);
  }, []);
  return dark ? "dark" : "light";
}

function Picture({ file, version }: { file: Artifact; version: ArtifactVersion }) {
  const [isBroken, setBroken] = useState(false);
  if (isBroken) return <Problem text={t.brokenImage} />;
  return (
    <div class="files-body file-picture">
      <img
        src={previewPath(file.id, version.number)}
        alt={t.content(file.name)}
        onError={() => setBroken(true)}
      />
    </div>
  );
}

function OnlyDownload({ file, version }: { file: Artifact; version: ArtifactVersion }) {
  return (
    <div class="files-body">
      <div class="empty-state">
        <Icon name="file" />
        <h3>{t.noPreview}</h3>
        <p>{t.downloadInstead}</p>
        <a class="btn btn-primary btn-sm" href={downloadPath(file.id, version.number)}>
          <Icon name="download" />
          {t.download}
        </a>
      </div>
    </div>
  );
}

function Problem({ text, onRetry }: { text: string; onRetry?: () => void }) {
  return (
    <div class="files-body">
      <div class="notice m-4 items-center" data-tone="bad" role="alert">
        <Icon name="alert" />
        <span class="grow">{text}</span>
        {onRetry && (
          <button type="button" class="btn btn-sm btn-outline-quiet" onClick={onRetry}>
            <Icon name="refresh" />
            {common.tryAgain}
          </button>
        )}
      </div>
    </div>
  );
}

function Text({ file, version, isSource }: Props) {
  const [text, setText] = useState<string | null>(null);
  const [problem, setProblem] = useState<string | null>(null);
  const [attempt, setAttempt] = useState(0);
  useEffect(() => {
    let isCurrent = true;
    const load = isDocument(version.kind) ? readingOf : textOf;
    load(file.id, version.number)
      .then((found) => isCurrent && setText(found))
      .catch((error) => isCurrent && setProblem(messageOf(error)));
    return () => {
      isCurrent = false;
    };
  }, [file.id, version.number, version.kind, attempt]);
  const path = downloadPath(file.id, version.number);
  if (problem !== null) {
    return (
      <Problem
        text={problem}
        onRetry={() => {
          setProblem(null);
          setAttempt(attempt + 1);
        }}
      />
    );
  }
  if (text === null) {
    return (
      <div class="files-body grid content-start gap-3 p-4" aria-busy="true">
        <span class="sr-only">{t.loadingFile}</span>
        <div class="skeleton-line w-4/5" />
        <div class="skeleton-line w-3/5" />
        <div class="skeleton-line w-11/12" />
      </div>
    );
  }
  const shown = text.slice(0, MOST_CHARACTERS);
  return (
    <div class="files-body" tabIndex={0} role="group" aria-label={t.content(file.name)}>
      {isDocument(version.kind) && (
        <p class="px-4 pt-3 text-xs text-(--quiet)">
          {filled(t.asRead, {
            download: (
              <a class="link-brand" href={path}>
                {t.downloadOriginal}
              </a>
            ),
          })}
        </p>
      )}
      {text === "" ? (
        <p class="p-4 text-sm text-(--quiet)">{t.empty}</p>
      ) : (
        <Shown file={file} version={version} isSource={isSource} text={shown} />
      )}
      {text.length > shown.length && (
        <p class="p-4 text-sm text-(--quiet)">
          {filled(t.cut, {
            download: (
              <a class="link-brand" href={path}>
                {t.downloadWhole}
              </a>
            ),
          })}
        </p>
      )}
    </div>
  );
}

function Shown({ file, version, isSource, text }: Props & { text: string }) {
  if (!isSource && version.kind === "markdown") {
    return (
      <div class="file-prose">
        <Markdown text={text} isStreaming={false} />
      </div>
    );
  }
  if (!isSource && version.kind === "csv") return <TableView text={text} name={file.name} />;
  if (!isSource && version.kind === "json") return <JsonFile text={text} />;
  return <Source text={text} name={isDocument(version.kind) ? "" : file.name} />;
}

function JsonFile({ text }: { text: string }) {
  const value = useMemo((): { json: Json } | null => {
    try {
      return { json: JSON.parse(text) as Json };
    } catch {
      return null;
    }
  }, [text]);
  return value ? (
    <div class="p-4">
      <JsonView value={value.json} />
    </div>
  ) : (
    <Source text={text} name="a.json" />
  );
}

function TableView({ text, name }: { text: string; name: string }) {
  const table = useMemo(() => parseTable(text), [text]);
  const [head = [], ...rows] = table.rows;
  return (
    <>
      <div class="file-table">
        <table>
          <caption class="sr-only">{name}</caption>
          <thead>
            <tr>
              {head.map((cell, at) => (
                <th key={at} scope="col">
                  {showHidden(cell)}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {rows.map((row, at) => (
              <tr key={at}>
                {row.map((cell, column) => (
                  <td key={column}>{showHidden(cell)}</td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {(table.more > 0 || table.cut > 0) && (
        <p class="p-4 text-sm text-(--quiet)">{t.moreInTable(table.more, table.cut)}</p>
      )}
    </>
  );
}

function Source({ text, name }: { text: string; name: string }) {
  const [html, setHtml] = useState<string | null>(null);
  const language = languageOf(name);
  useEffect(() => {
    let isCurrent = true;
    setHtml(null);
    if (language) {
      colours(text, language)
        .then((found) => isCurrent && setHtml(found))
        .catch(() => undefined); // without colours it is still the text
    }
    return () => {
      isCurrent = false;
    };
  }, [text, language]);
  return (
    <div class="file-source">
      <div class="file-copy">
        <CopyButton text={() => text} />
      </div>
      {html === null ? (
        <pre tabIndex={0}>
          <code>{text}</code>
        </pre>
      ) : (
        <pre tabIndex={0}>
          {/* Spans with classes and nothing else: `colours` has seen to that. */}
          <code dangerouslySetInnerHTML={{ __html: html }} />
        </pre>
      )}
    </div>
  );
}
