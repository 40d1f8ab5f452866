import { sizeWord } from "../../artifacts/words";
import { safeHref } from "../../markdown/links";
import { pickResource } from "../../store/picked";
import t from "../../texts/calls";
import { CopyButton } from "../../ui/copy";
import { Icon } from "../../ui/icon";
import { JsonView } from "../../ui/json-tree";
import type { ContentPart, Json } from "../../wire";
import { asJson } from "./arguments";
import { saysTheSame } from "./repeated";

const IMAGE_TYPES = new Set(["image/png", "image/jpeg", "image/gif", "image/webp"]);

function TextPart({ text }: { text: string }) {
  const value = asJson(text);
  if (value !== undefined) return <JsonView value={value} />;
  return (
    <div class="json-box">
      <div class="json-bar">
        <CopyButton text={() => text} />
      </div>
      <pre class="json-raw" tabIndex={0}>
        {text || t.empty}
      </pre>
    </div>
  );
}

function download(data: string, mimeType: string): void {
  const bytes = Uint8Array.from(atob(data), (c) => c.charCodeAt(0));
  const url = URL.createObjectURL(new Blob([bytes], { type: "application/octet-stream" }));
  const link = document.createElement("a");
  link.href = url;
  link.download = `result.${/\/([\w-]+)/.exec(mimeType)?.[1] ?? "bin"}`;
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

const AUDIO_TYPES = new Set([
  "audio/mpeg",
  "audio/mp4",
  "audio/ogg",
  "audio/wav",
  "audio/webm",
  "audio/flac",
]);

/** Where a part came from, so that what it names can be attached. */
export interface Origin {
  conversationId: string;
  server: { id: string; name: string };
}

function Attach({ origin, uri, name }: { origin: Origin | undefined; uri: string; name: string }) {
  if (!origin) return null;
  const { conversationId, server } = origin;
  return (
    <button
      type="button"
      class="copy-button"
      title={t.attachTitle}
      onClick={() =>
        pickResource(conversationId, {
          server_id: server.id,
          server_name: server.name,
          uri,
          title: name || uri,
          resource_id: null,
        })
      }
    >
      <Icon name="paperclip" />
      {t.attach}
    </button>
  );
}

function Part({ part, origin }: { part: ContentPart; origin: Origin | undefined }) {
  switch (part.type) {
    case "text":
      return <TextPart text={part.text} />;
    case "image":
      return IMAGE_TYPES.has(part.mime_type) ? (
        <img class="result-image" src={`data:${part.mime_type};base64,${part.data}`} alt={t.returned} />
      ) : (
        <Download data={part.data} mimeType={part.mime_type} what={t.image} />
      );
    case "audio":
      return AUDIO_TYPES.has(part.mime_type) ? (
        <audio class="w-full" controls preload="none" src={`data:${part.mime_type};base64,${part.data}`} />
      ) : (
        <Download data={part.data} mimeType={part.mime_type} what={t.audio} />
      );
    case "resource_link": {
      const href = safeHref(part.uri);
      return (
        <p class="text-sm">
          <Attach origin={origin} uri={part.uri} name={part.name} /> {part.name || t.resource}:{" "}
          {href ? (
            <a
              class="link-brand break-all"
              href={href}
              target="_blank"
              rel="noopener noreferrer nofollow"
              data-foreign
            >
              {part.uri}
            </a>
          ) : (
            <code class="break-all">{part.uri}</code>
          )}
        </p>
      );
    }
    case "resource":
      return (
        <div class="grid gap-1.5">
          <p class="text-xs text-(--quiet) break-all">
            {part.uri}
            {part.mime_type && ` · ${part.mime_type}`}
          </p>
          {part.text === null ? (
            <p class="text-sm text-(--quiet)">{t.binary}</p>
          ) : (
            <TextPart text={part.text} />
          )}
        </div>
      );
    default:
      return <p class="text-sm text-(--quiet)">{t.unknownPart}</p>;
  }
}

function Download({ data, mimeType, what }: { data: string; mimeType: string; what: string }) {
  const size = sizeWord(Math.round((data.length * 3) / 4));
  return (
    <button
      type="button"
      class="btn btn-sm btn-outline-quiet justify-self-start"
      onClick={() => download(data, mimeType)}
    >
      {t.download(what, mimeType, size)}
    </button>
  );
}

interface ResultProps {
  content: ContentPart[];
  truncated: boolean;
  origin?: Origin | undefined;
  structured?: Json | undefined;
  structuredProblem?: string | null | undefined;
}

export function Result({ content, truncated, origin, structured, structuredProblem }: ResultProps) {
  // Most servers say the same twice: as a text for the model, and as data.
  const isRepeated = saysTheSame(content, structured);
  const hasData = structured !== undefined && structured !== null;
  if (content.length === 0 && !hasData) {
    return <p class="text-sm text-(--quiet)">{t.returnedNothing}</p>;
  }
  return (
    <div class="grid gap-3">
      {content.map((part, i) => (
        <Part key={i} part={part} origin={origin} />
      ))}
      {hasData && !isRepeated && (
        <div class="grid gap-1.5">
          <p class="text-xs font-semibold text-(--quiet)">{t.asData}</p>
          <JsonView value={structured} />
        </div>
      )}
      {structuredProblem && (
        <p class="text-xs text-(--quiet)">
          {t.structuredProblems[structuredProblem] ?? t.structuredMismatch}
        </p>
      )}
      {truncated && <p class="text-xs text-(--quiet)">{t.truncated}</p>}
    </div>
  );
}
