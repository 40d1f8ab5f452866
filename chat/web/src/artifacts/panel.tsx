/** The files of a conversation: their list, and one of them with its versions. */
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { messageOf, toast } from "../app/toasts";
import { moment } from "../formats";
import { ApiProblem } from "../net/api";
import common from "../texts/common";
import t from "../texts/files";
import { Icon } from "../ui/icon";
import { Menu, MenuButton, MenuLink } from "../ui/menu";
import type { Artifact, ArtifactVersion } from "../wire";
import { Comparison } from "./compare";
import { KnowledgeView } from "./knowledge";
import {
  closePanel,
  downloadPath,
  files,
  opened,
  openPanel,
  pickFiles,
  remove,
  rename,
  restore,
  saveText,
  textOf,
  uploading,
  versionsOf,
} from "./state";
import { Content } from "./view";
import { ICON_OF, isReadable, isRendered, kindWord, makerWord, sizeWord } from "./words";

export function FilesPanel() {
  const place = opened.value;
  if (place?.knowledge) return <KnowledgeView wanted={place.knowledge} close={<CloseButton />} />;
  const file = place?.artifactId ? files.value.find((one) => one.id === place.artifactId) : undefined;
  return file ? <FileView key={file.id} file={file} wanted={place?.version ?? null} /> : <FileList />;
}

function CloseButton() {
  return (
    <button
      type="button"
      class="btn btn-sm btn-square btn-quiet"
      aria-label={common.close}
      onClick={closePanel}
    >
      <Icon name="close" />
    </button>
  );
}

/** Moves the focus to the heading of what has just been opened. */
function useArrival(key: string) {
  const heading = useRef<HTMLHeadingElement>(null);
  const isQuiet = opened.value?.isQuiet;
  useEffect(() => {
    if (!isQuiet) heading.current?.focus({ preventScroll: true });
  }, [key, isQuiet]);
  return heading;
}

// -- the list ----------------------------------------------------------------------------------------------------

function FileList() {
  const heading = useArrival("list");
  const list = files.value;
  const before = useRef(list.length);
  useEffect(() => {
    // Whoever deleted a file was at its button.
    const isLost = list.length < before.current && document.activeElement === document.body;
    if (isLost) heading.current?.focus({ preventScroll: true });
    before.current = list.length;
  }, [list.length, heading]);
  return (
    <>
      <header class="files-head">
        <h2 ref={heading} tabIndex={-1} class="grow text-base">
          {t.title}
        </h2>
        <button type="button" class="btn btn-sm btn-outline-quiet" onClick={pickFiles}>
          <Icon
            name={uploading.value > 0 ? "loader" : "upload"}
            class={uploading.value > 0 ? "animate-spin" : ""}
          />
          {t.add}
        </button>
        <CloseButton />
      </header>
      <div class="sr-only" role="status">
        {uploading.value > 0 ? t.uploading : ""}
      </div>
      <div class="files-body">
        {list.length === 0 ? (
          <div class="empty-state">
            <Icon name="files" />
            <h3>{t.none}</h3>
            <p>{t.noneText}</p>
          </div>
        ) : (
          <ul class="file-list">
            {list.map((file) => (
              <li key={file.id} class="file-row">
                <button type="button" class="file-card" onClick={() => openPanel(file.id)}>
                  <Icon name={ICON_OF[file.version.kind] ?? "file"} />
                  <span class="min-w-0 grow text-left">
                    <span class="block truncate font-medium">{file.name}</span>
                    <span class="block truncate text-xs text-(--quiet)">
                      {t.about(
                        kindWord(file.version.kind),
                        sizeWord(file.version.size),
                        file.version.number,
                        makerWord(file.version),
                      )}
                    </span>
                  </span>
                </button>
                <FileMenu file={file} version={file.version.number} />
              </li>
            ))}
          </ul>
        )}
      </div>
    </>
  );
}

function FileMenu(props: { file: Artifact; version: number; onRename?: () => void }) {
  const { file } = props;
  return (
    <Menu
      label={t.more(file.name)}
      buttonClass="btn btn-sm btn-square btn-quiet"
      button={<Icon name="ellipsis" />}
      align="end"
    >
      <MenuLink icon="download" href={downloadPath(file.id, props.version)}>
        {t.download}
      </MenuLink>
      <MenuButton icon="pencil" onClick={() => (props.onRename ? props.onRename() : askForName(file))}>
        {t.renameMore}
      </MenuButton>
      <MenuButton icon="trash" tone="bad" onClick={() => remove(file)}>
        {t.delete}
      </MenuButton>
    </Menu>
  );
}

/** The list has no room for a field: the name is changed where the file is open. */
let renamesOnArrival = "";
function askForName(file: Artifact): void {
  renamesOnArrival = file.id;
  openPanel(file.id);
}

// -- one file ----------------------------------------------------------------------------------------------------

type Mode = "view" | "source" | "compare" | "edit";

function FileView({ file, wanted }: { file: Artifact; wanted: number | null }) {
  const heading = useArrival(file.id);
  const [versions, setVersions] = useState<ArtifactVersion[]>([file.version]);
  const [mode, setMode] = useState<Mode>("view");
  const [isRenaming, setRenaming] = useState(renamesOnArrival === file.id);
  const newest = file.version.number;
  useEffect(() => {
    renamesOnArrival = "";
  }, []);
  useEffect(() => {
    let isCurrent = true;
    versionsOf(file.id)
      .then((found) => isCurrent && setVersions(found))
      .catch((error) => toast(messageOf(error), "bad"));
    return () => {
      isCurrent = false;
    };
  }, [file.id, newest]);
  const version = versions.find((one) => one.number === (wanted ?? newest)) ?? file.version;
  const isNewest = version.number === newest;
  const shown: Mode = mode === "edit" && !isReadable(file.version.kind) ? "view" : mode;
  return (
    <>
      <header class="files-head">
        <button
          type="button"
          class="btn btn-sm btn-square btn-quiet"
          aria-label={t.all}
          title={t.all}
          onClick={() => openPanel()}
        >
          <Icon name="arrowLeft" />
        </button>
        {isRenaming ? (
          <NameField file={file} onDone={() => setRenaming(false)} />
        ) : (
          <h2 ref={heading} tabIndex={-1} class="grow truncate text-base" title={file.name}>
            {file.name}
          </h2>
        )}
        <FileMenu file={file} version={version.number} onRename={() => setRenaming(true)} />
        <CloseButton />
      </header>
      {shown !== "edit" && (
        <div class="files-tools">
          <label class="sr-only" for="file-version">
            {t.version}
          </label>
          <select
            id="file-version"
            class="files-select"
            value={String(version.number)}
            onChange={(event) => {
              const chosen = Number(event.currentTarget.value);
              openPanel(file.id, chosen === newest ? null : chosen);
            }}
          >
            {versions.map((one) => (
              <option key={one.number} value={String(one.number)}>
                {one.number === newest ? t.versionNewest(one.number) : t.versionNumber(one.number)}
              </option>
            ))}
          </select>
          {isReadable(version.kind) && <ModeChoice mode={shown} version={version} onChange={setMode} />}
          {isNewest && isReadable(version.kind) && (
            <button
              type="button"
              class="btn btn-sm btn-outline-quiet ml-auto"
              onClick={() => setMode("edit")}
            >
              <Icon name="pencil" />
              {common.edit}
            </button>
          )}
          {!isNewest && (
            <button
              type="button"
              class="btn btn-sm btn-outline-quiet ml-auto"
              onClick={() => restore(file, version.number)}
            >
              <Icon name="archiveRestore" />
              {t.restore}
            </button>
          )}
        </div>
      )}
      {shown !== "edit" && (
        <p class="files-about">
          {t.aboutVersion(
            kindWord(version.kind),
            sizeWord(version.size),
            makerWord(version),
            moment(version.created_at),
          )}
        </p>
      )}
      {shown === "edit" ? (
        <Editor file={file} onDone={() => setMode("view")} />
      ) : shown === "compare" && version.number > 1 ? (
        <Comparison file={file} versions={versions} version={version} />
      ) : (
        <Content key={version.number} file={file} version={version} isSource={shown === "source"} />
      )}
    </>
  );
}

function ModeChoice(props: { mode: Mode; version: ArtifactVersion; onChange: (mode: Mode) => void }) {
  const { mode, version, onChange } = props;
  const modes: [Mode, string][] = [["view", isRendered(version.kind) ? t.preview : t.text]];
  if (isRendered(version.kind)) modes.push(["source", t.source]);
  if (version.number > 1) modes.push(["compare", t.compare]);
  if (modes.length === 1) return null;
  return (
    <div class="theme-choice" role="group" aria-label={common.show}>
      {modes.map(([name, word]) => (
        <button key={name} type="button" aria-pressed={mode === name} onClick={() => onChange(name)}>
          {word}
        </button>
      ))}
    </div>
  );
}

function NameField({ file, onDone }: { file: Artifact; onDone: () => void }) {
  const field = useRef<HTMLInputElement>(null);
  const [problem, setProblem] = useState("");
  useLayoutEffect(() => {
    const end = file.name.lastIndexOf(".");
    field.current?.focus();
    field.current?.setSelectionRange(0, end > 0 ? end : file.name.length);
  }, [file.name]);
  return (
    <form
      class="flex min-w-0 grow flex-wrap gap-1 py-2"
      onSubmit={async (event) => {
        event.preventDefault();
        const name = field.current?.value.trim() ?? "";
        if (name === "" || name === file.name) return onDone();
        try {
          await rename(file, name);
          onDone();
        } catch (error) {
          setProblem(messageOf(error));
          field.current?.focus();
        }
      }}
    >
      <input
        ref={field}
        class="files-name"
        aria-label={t.name}
        aria-invalid={problem !== ""}
        aria-describedby={problem ? "file-name-problem" : undefined}
        onInput={() => setProblem("")}
        defaultValue={file.name}
        maxLength={120}
        autocomplete="off"
        onKeyDown={(event) => {
          if (event.key !== "Escape") return;
          event.preventDefault();
          event.stopPropagation();
          onDone();
        }}
      />
      <button type="submit" class="btn btn-sm btn-primary">
        {t.rename}
      </button>
      {problem && (
        <p id="file-name-problem" class="field-error w-full" role="alert">
          {problem}
        </p>
      )}
    </form>
  );
}

// -- editing -----------------------------------------------------------------------------------------------------

function Editor({ file, onDone }: { file: Artifact; onDone: () => void }) {
  const [base, setBase] = useState(file.version.number);
  const [before, setBefore] = useState<string | null>(null);
  const [text, setText] = useState("");
  const [problem, setProblem] = useState<string | null>(null);
  const [isBusy, setBusy] = useState(false);
  const field = useRef<HTMLTextAreaElement>(null);
  useEffect(() => {
    textOf(file.id, base)
      .then((found) => {
        if (before !== null) return;
        setBefore(found);
        setText(found);
        setTimeout(() => field.current?.focus());
      })
      .catch((error) => setProblem(messageOf(error)));
  }, [file.id, base, before]);
  const isChanged = before !== null && text !== before;
  const isLate = file.version.number > base;
  const save = async () => {
    if (!isChanged || isBusy) return;
    setBusy(true);
    setProblem(null);
    try {
      const saved = await saveText(file, text, base);
      openPanel(file.id);
      toast(t.savedAs(saved.version.number), "ok");
      onDone();
    } catch (error) {
      const isConflict = error instanceof ApiProblem && error.status === 409;
      setProblem(isConflict ? null : messageOf(error));
      setBusy(false);
    }
  };
  return (
    <form
      class="files-editor"
      onSubmit={(event) => {
        event.preventDefault();
        void save();
      }}
    >
      {isLate && (
        <div class="notice" data-tone="warn" role="alert">
          <Icon name="alert" />
          <span class="grow">{t.savedMeanwhile(file.version.number, makerWord(file.version))}</span>
          <button
            type="button"
            class="btn btn-xs btn-outline-quiet"
            onClick={() => setBase(file.version.number)}
          >
            {t.keepMine}
          </button>
        </div>
      )}
      {problem && (
        <div class="notice" data-tone="bad" role="alert">
          <Icon name="alert" />
          <span>{problem}</span>
        </div>
      )}
      <textarea
        ref={field}
        class="files-text"
        aria-label={t.content(file.name)}
        spellcheck={file.version.kind === "markdown" || file.version.kind === "text"}
        value={text}
        disabled={before === null}
        onInput={(event) => setText(event.currentTarget.value)}
        onKeyDown={(event) => {
          if (event.key === "Escape") event.preventDefault(); // what was written is not thrown away by a slip
          if (event.key === "s" && (event.ctrlKey || event.metaKey)) {
            event.preventDefault();
            void save();
          }
        }}
      />
      <div class="flex flex-wrap items-center gap-2">
        <button type="submit" class="btn btn-sm btn-primary" disabled={!isChanged || isBusy || isLate}>
          <Icon name={isBusy ? "loader" : "check"} class={isBusy ? "animate-spin" : ""} />
          {t.saveAs(file.version.number + 1)}
        </button>
        <button type="button" class="btn btn-sm btn-quiet" onClick={onDone}>
          {isChanged ? common.discard : common.cancel}
        </button>
      </div>
    </form>
  );
}
