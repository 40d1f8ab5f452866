/** Room for the panel beside the conversation; what fills it is loaded when it is first opened. */
import { type FunctionComponent, h } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { tellMissing } from "../app/later";
import t from "../texts/files";
import { leavingWith, openModal } from "../ui/modal";
import { fetchPart } from "../ui/parts";
import { DropArea } from "./button";
import { closePanel, isPanelOpen, upload, WIDE } from "./state";

function useWide(): boolean {
  const [isWide, setWide] = useState(() => matchMedia(WIDE).matches);
  useEffect(() => {
    const query = matchMedia(WIDE);
    const changed = () => setWide(query.matches);
    query.addEventListener("change", changed);
    return () => query.removeEventListener("change", changed);
  }, []);
  return isWide;
}

export function FilesSide() {
  const isOpen = isPanelOpen.value;
  const isWide = useWide();
  const [panel, setPanel] = useState<{ Panel: FunctionComponent } | null>(null);
  useEffect(() => {
    if (!isOpen || panel) return;
    fetchPart(() => import("./panel"))
      .then((module) => setPanel({ Panel: module.FilesPanel }))
      .catch(() => {
        tellMissing();
        closePanel();
      });
  }, [isOpen, panel]);
  if (!isOpen) return null;
  const content = (
    <DropArea label={t.dropHere} onFiles={(list) => void upload(list)}>
      {panel ? h(panel.Panel, {}) : <Loading />}
    </DropArea>
  );
  return isWide ? (
    <aside
      id="files-panel"
      class="files-panel"
      aria-label={t.panel}
      onKeyDown={(event) => {
        if (event.key !== "Escape" || event.defaultPrevented) return;
        if (event.currentTarget.querySelector(":popover-open")) return; // the menu closes, by itself
        closePanel();
      }}
    >
      {content}
    </aside>
  ) : (
    <Sheet>{content}</Sheet>
  );
}

/** Over everything else, where there is no room beside. */
function Sheet({ children }: { children: preact.ComponentChildren }) {
  const ref = useRef<HTMLDialogElement>(null);
  useEffect(() => (ref.current ? openModal(ref.current) : undefined), []);
  return (
    <dialog
      ref={ref}
      id="files-panel"
      class="files-panel files-sheet"
      aria-label={t.panel}
      {...leavingWith(ref, closePanel)}
    >
      {children}
    </dialog>
  );
}

function Loading() {
  return (
    <div class="grid gap-4 p-5" aria-busy="true">
      <span class="sr-only">{t.loading}</span>
      <div class="skeleton-line w-2/5" />
      <div class="skeleton-line w-4/5" />
      <div class="skeleton-line w-3/5" />
    </div>
  );
}
