import { useEffect, useState } from "preact/hooks";
import { api } from "../../app/boot";
import { ServerTile } from "../../app/server-tile";
import { messageOf } from "../../app/toasts";
import { files, openPanel, previewPath } from "../../artifacts/state";
import { ICON_OF, sizeWord } from "../../artifacts/words";
import { moment } from "../../formats";
import { isFile, keyOf, type Picked, pickAgain } from "../../store/attachments";
import { changedResources, picked, pickResource } from "../../store/picked";
import t from "../../texts/chat";
import choosing from "../../texts/choosing";
import common from "../../texts/common";
import comparingTexts from "../../texts/comparing";
import fileTexts from "../../texts/files";
import { Dialog } from "../../ui/dialog";
import { Icon } from "../../ui/icon";
import { refocus } from "../../ui/refocus";
import type {
  ArtifactKind,
  AttachedFile,
  Attachment,
  Bud,
  ChosenModel,
  ContentPart,
  ServerName,
} from "../../wire";
import { type Origin, Result } from "../calls/result";
import { comparedBy, comparing, dropCompared } from "./comparing";
import { leaveOut } from "./leaving-out";
import { dropMention, mentionOf } from "./mentions";
import { dropUpload, mayTryAgain, placesOf, tryAgain, type Upload, uploadsOf } from "./uploads";

function DropButton({ label, onDrop }: { label: string; onDrop: () => void }) {
  return (
    <button
      type="button"
      class="chip-drop"
      aria-label={label}
      onClick={(event) => {
        onDrop();
        // Pressed by a key: the button is gone with its chip, and the focus would be too.
        if (event.detail === 0) refocus(null);
      }}
    >
      <Icon name="close" />
    </button>
  );
}

/** A small picture, or the sign of the file's kind. */
function FileSign({ file }: { file: { id: string; version: number; kind: ArtifactKind } }) {
  const [isBroken, setBroken] = useState(false);
  if (file.kind !== "image" || isBroken) return <Icon name={ICON_OF[file.kind]} />;
  const source = previewPath(file.id, file.version);
  return <img class="chip-picture" src={source} alt="" onError={() => setBroken(true)} />;
}

function PickedChip({ one, onDrop }: { one: Picked; onDrop: () => void }) {
  return (
    <li class="chip" title={isFile(one) ? one.title : one.uri}>
      {isFile(one) ? (
        <FileSign file={{ id: one.artifact_id, version: one.version, kind: one.kind }} />
      ) : (
        <ServerTile id={one.server_id} name={one.server_name} />
      )}
      <span class="truncate">{one.title}</span>
      <span class="chip-from">{isFile(one) ? sizeWord(one.size) : one.server_name}</span>
      <DropButton label={t.remove(one.title)} onDrop={onDrop} />
    </li>
  );
}

function UploadChip(props: { one: Upload; draftKey: string; conversationId: string | undefined }) {
  const { one, draftKey, conversationId } = props;
  const percent = one.progress === null ? null : Math.round(one.progress * 100);
  return (
    <li class="chip" data-tone={one.error ? "bad" : undefined}>
      <Icon name={percent !== null ? "loader" : "upload"} class={percent !== null ? "animate-spin" : ""} />
      <span class="truncate">{one.name}</span>
      {one.error ? (
        <span class="field-error" role="alert">
          {one.error}
        </span>
      ) : (
        <span class="chip-from">{percent !== null ? t.uploading(percent) : sizeWord(one.file.size)}</span>
      )}
      {percent !== null && <progress class="chip-progress" max={100} value={percent} aria-label={one.name} />}
      {mayTryAgain(one) && (
        <button type="button" class="link-brand" onClick={() => tryAgain(draftKey, conversationId, one)}>
          {common.tryAgain}
        </button>
      )}
      <DropButton label={t.remove(one.name)} onDrop={() => dropUpload(draftKey, one.key)} />
    </li>
  );
}

function MentionChip({ bud, onDrop }: { bud: Bud; onDrop: () => void }) {
  return (
    <li class="chip" data-tone="brand">
      <span aria-hidden="true">{bud.avatar || "🌱"}</span>
      <span class="truncate">{choosing.asks(bud.name)}</span>
      <DropButton label={choosing.dontAsk(bud.name)} onDrop={onDrop} />
    </li>
  );
}

function CompareChip({ draftKey, models }: { draftKey: string; models: readonly ChosenModel[] }) {
  return (
    <li class="chip compare-chip" data-tone="brand">
      <Icon name="columns" />
      <button
        type="button"
        class="link-quiet min-w-0"
        title={comparingTexts.change}
        onClick={() => {
          comparing.value = { draft: draftKey };
        }}
      >
        {comparingTexts.compares(models.map((one) => one.name))}
      </button>
      <DropButton label={comparingTexts.drop} onDrop={() => dropCompared(draftKey)} />
    </li>
  );
}

/** Whom the next message asks, what it takes along, and what is on its way; each can be taken out again. */
export function PickedChips(props: { draftKey: string; conversationId: string | undefined }) {
  const { draftKey, conversationId } = props;
  const list = picked.value[draftKey] ?? [];
  const uploads = uploadsOf(draftKey);
  const bud = mentionOf(draftKey);
  const compared = comparedBy(draftKey);
  if (list.length + uploads.length + compared.length === 0 && !bud) return null;
  const places = placesOf(list);
  // A file that arrives keeps its place: another one would come under the pointer that is about to remove it.
  const chips = [
    ...list.map((one, index) => ({
      at: places[index] ?? 0,
      chip: <PickedChip key={keyOf(one)} one={one} onDrop={() => leaveOut(draftKey, one)} />,
    })),
    ...uploads.map((one) => ({
      at: one.key,
      chip: <UploadChip key={one.key} one={one} draftKey={draftKey} conversationId={conversationId} />,
    })),
  ].sort((a, b) => a.at - b.at);
  return (
    <ul class="chips" aria-label={bud || compared.length > 0 ? t.withMessage : t.attached}>
      {compared.length > 0 && <CompareChip draftKey={draftKey} models={compared} />}
      {bud && <MentionChip bud={bud} onDrop={() => dropMention(draftKey)} />}
      {chips.map(({ chip }) => chip)}
    </ul>
  );
}

function hasChanged(attachment: Attachment): boolean {
  const { resource_id, read_at } = attachment;
  if (!resource_id || !read_at) return false;
  const noted = changedResources.value[resource_id];
  const changed = Math.max(noted ?? 0, attachment.changed_at ? Date.parse(attachment.changed_at) : 0);
  return changed > Date.parse(read_at);
}

/** Why it could not be read, or not all of it. */
function Remark({ attachment: { error, status } }: { attachment: Attachment }) {
  if (!error) return null;
  return <p class={status === "failed" ? "field-error text-right" : "text-xs text-(--quiet)"}>{error}</p>;
}

/** A file opens beside the chat; a picture is shown right here. */
function FileChip({ attachment, file }: { attachment: Attachment; file: AttachedFile }) {
  const isThere = files.value.some((one) => one.id === file.id);
  const word = { queued: t.reading, failed: t.notRead, ready: "" }[attachment.status];
  const isPicture = file.kind === "image" && isThere && attachment.status !== "failed";
  return (
    <li class="grid justify-items-end gap-1">
      <button
        type="button"
        class={isPicture ? "sent-picture" : "chip"}
        data-tone={attachment.status === "failed" ? "bad" : undefined}
        disabled={!isThere}
        aria-label={t.openFile(file.name)}
        title={file.name}
        onClick={() => openPanel(file.id, file.version)}
      >
        {isPicture ? (
          <img src={previewPath(file.id, file.version)} alt={file.name} loading="lazy" />
        ) : (
          <>
            <Icon name={attachment.status === "queued" ? "loader" : ICON_OF[file.kind]} />
            <span class="truncate">{file.name}</span>
            <span class="chip-from">{isThere ? sizeWord(file.size) : fileTexts.deletedFile}</span>
            {word && <span class="chip-from">{word}</span>}
          </>
        )}
      </button>
      <Remark attachment={attachment} />
    </li>
  );
}

/** What was read of a resource: its beginning, until the rest is here. */
function Reading({ attachment: { id, preview }, origin }: { attachment: Attachment; origin: Origin }) {
  const [content, setContent] = useState<ContentPart[] | null>(null);
  const [problem, setProblem] = useState("");
  const load = () => {
    setProblem("");
    api.attachment(id).then(
      (found) => setContent(found.content),
      (error: unknown) => setProblem(messageOf(error)),
    );
  };
  useEffect(load, [id]);
  if (content) return <Result content={content} truncated={false} origin={origin} />;
  return (
    <div class="grid gap-3" aria-busy={!problem}>
      {preview && <pre class="json-raw">{preview}</pre>}
      {problem ? (
        <div class="grid gap-2 text-sm">
          <p role="alert">{problem}</p>
          <button type="button" class="btn btn-sm btn-outline-quiet justify-self-start" onClick={load}>
            {common.tryAgain}
          </button>
        </div>
      ) : (
        <p class="text-sm text-(--quiet)" role="status">
          {common.loading}
        </p>
      )}
    </div>
  );
}

function ResourceChip(props: { attachment: Attachment; server: ServerName; conversationId: string }) {
  const { attachment, server, conversationId } = props;
  const [isOpen, setOpen] = useState(false);
  const title = attachment.title || attachment.uri;
  const isChanged = hasChanged(attachment);
  const word = { queued: t.reading, failed: t.notRead, ready: "" }[attachment.status];
  return (
    <li class="grid justify-items-end gap-1">
      <button
        type="button"
        class="chip"
        data-tone={attachment.status === "failed" ? "bad" : undefined}
        title={attachment.uri}
        onClick={() => setOpen(true)}
      >
        {attachment.status === "queued" ? (
          <Icon name="loader" />
        ) : (
          <ServerTile id={server.id} name={server.name} />
        )}
        <span class="truncate">{title}</span>
        <span class="chip-from">{server.name}</span>
        {attachment.size !== null && <span class="chip-from">{sizeWord(attachment.size)}</span>}
        {word && <span class="chip-from">{word}</span>}
      </button>
      <Remark attachment={attachment} />
      {(isChanged || attachment.status === "failed") && (
        <p class="text-xs text-(--quiet)">
          {isChanged && `${t.changedSince} `}
          <button
            type="button"
            class="link-brand"
            onClick={() => pickResource(conversationId, pickAgain(attachment, server))}
          >
            {t.readAgain}
          </button>
        </p>
      )}
      {isOpen && (
        <Dialog title={title} onClose={() => setOpen(false)}>
          <div class="grid gap-3 p-5 pt-3">
            <p class="text-xs text-(--quiet) break-all">
              {attachment.uri} · {server.name}
              {attachment.read_at && ` · ${t.readAt(moment(attachment.read_at))}`}
            </p>
            {attachment.status === "ready" ? (
              <Reading attachment={attachment} origin={{ conversationId, server }} />
            ) : (
              <p class="text-sm">{attachment.error ?? t.notReadYet}</p>
            )}
          </div>
        </Dialog>
      )}
    </li>
  );
}

/** What a message took along, and how reading it went. */
export function AttachmentChips({
  attachments,
  conversationId,
}: {
  attachments: Attachment[];
  conversationId: string;
}) {
  if (attachments.length === 0) return null;
  return (
    <ul class="chips justify-end" aria-label={t.attached}>
      {attachments.map((one) => {
        if (one.file) return <FileChip key={one.id} attachment={one} file={one.file} />;
        const { server } = one;
        return (
          server && (
            <ResourceChip key={one.id} attachment={one} server={server} conversationId={conversationId} />
          )
        );
      })}
    </ul>
  );
}
