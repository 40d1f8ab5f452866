/** What of the files is always there: the button in the header, the link on a tool card, and where files are dropped. */
import type { ComponentChildren } from "preact";
import { useRef, useState } from "preact/hooks";
import t from "../texts/files";
import { Icon } from "../ui/icon";
import type { ToolCall } from "../wire";
import { closePanel, files, isPanelOpen, opened, openPanel } from "./state";
import { ICON_OF, kindWord, sizeWord } from "./words";

export function FilesButton() {
  const count = files.value.length;
  const isOpen = isPanelOpen.value;
  const label = t.count(count);
  return (
    <button
      type="button"
      class="btn btn-sm btn-quiet files-button"
      aria-label={label}
      aria-expanded={isOpen}
      aria-controls="files-panel"
      title={label}
      onClick={() => (isOpen ? closePanel() : openPanel())}
    >
      <Icon name="files" />
      {count > 0 && <span class="files-count">{count}</span>}
    </button>
  );
}

/** The file that a call read, made or sent. */
export function FileOfCall({ call }: { call: ToolCall }) {
  const { artifact } = call;
  if (!artifact) return null;
  const isThere = files.value.some((file) => file.id === artifact.id);
  const isHere = opened.value?.artifactId === artifact.id && opened.value.version === artifact.version;
  return (
    <div class="file-of-call">
      <button
        type="button"
        class="file-card"
        disabled={!isThere}
        aria-pressed={isHere}
        onClick={() => openPanel(artifact.id, artifact.version)}
      >
        <Icon name={ICON_OF[artifact.kind] ?? "file"} />
        <span class="min-w-0 grow text-left">
          <span class="block truncate font-medium">{artifact.name}</span>
          <span class="block truncate text-xs text-(--quiet)">
            {isThere
              ? t.aboutOfCall(kindWord(artifact.kind), artifact.version, sizeWord(artifact.size))
              : t.deletedFile}
          </span>
        </span>
        {isThere && <span class="text-xs text-(--quiet)">{t.open}</span>}
      </button>
    </div>
  );
}

const hasFiles = (event: DragEvent): boolean => event.dataTransfer?.types.includes("Files") ?? false;

/** Takes files that are dropped anywhere on what it holds. */
export function DropArea(props: {
  /** What happens to them, in words. */
  label: string;
  onFiles: (files: Iterable<File>) => void;
  children: ComponentChildren;
}) {
  const { label, onFiles, children } = props;
  const [isOver, setOver] = useState(false);
  const depth = useRef(0);
  const leave = () => {
    depth.current = 0;
    setOver(false);
  };
  return (
    <div
      class="drop-area"
      onDragEnter={(event) => {
        if (!hasFiles(event)) return;
        depth.current += 1;
        setOver(true);
      }}
      onDragOver={(event) => {
        if (!hasFiles(event)) return;
        event.preventDefault();
        if (event.dataTransfer) event.dataTransfer.dropEffect = "copy";
      }}
      onDragLeave={(event) => {
        if (!hasFiles(event)) return;
        depth.current -= 1;
        if (depth.current <= 0) leave();
      }}
      onDrop={(event) => {
        if (!hasFiles(event)) return;
        event.preventDefault();
        leave();
        onFiles(event.dataTransfer?.files ?? []);
      }}
    >
      {children}
      {isOver && (
        <div class="drop-veil" aria-hidden="true">
          <Icon name="upload" />
          {label}
        </div>
      )}
    </div>
  );
}

/** Let a file that is dropped where nothing takes it do nothing: browsers open it in place of the page. */
export function refuseFiles(): void {
  for (const kind of ["dragover", "drop"] as const)
    addEventListener(kind, (event) => {
      if (event.defaultPrevented || !hasFiles(event)) return;
      event.preventDefault();
      if (event.dataTransfer) event.dataTransfer.dropEffect = "none";
    });
}
