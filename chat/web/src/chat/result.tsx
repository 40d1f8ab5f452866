import { safeHref } from "../markdown/render";
import { CopyButton } from "../ui/copy";
import type { ContentPart } from "../wire";
import { asJson } from "./arguments";
import { JsonView } from "./json-tree";

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
        {text || "(empty)"}
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

function Part({ part }: { part: ContentPart }) {
  switch (part.type) {
    case "text":
      return <TextPart text={part.text} />;
    case "image":
      return IMAGE_TYPES.has(part.mime_type) ? (
        <img
          class="result-image"
          src={`data:${part.mime_type};base64,${part.data}`}
          alt="What the tool returned"
        />
      ) : (
        <Download data={part.data} mimeType={part.mime_type} what="Image" />
      );
    case "audio":
      return <Download data={part.data} mimeType={part.mime_type} what="Audio" />;
    case "resource_link": {
      const href = safeHref(part.uri);
      return (
        <p class="text-sm">
          {part.name || "Resource"}:{" "}
          {href ? (
            <a class="link-brand break-all" href={href} target="_blank" rel="noopener noreferrer nofollow">
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
          <TextPart text={part.text} />
        </div>
      );
    default:
      return <p class="text-sm text-(--quiet)">A part of a kind that cannot be shown.</p>;
  }
}

function Download({ data, mimeType, what }: { data: string; mimeType: string; what: string }) {
  const size = Math.round((data.length * 3) / 4 / 1024);
  return (
    <button
      type="button"
      class="btn btn-sm btn-outline-quiet justify-self-start"
      onClick={() => download(data, mimeType)}
    >
      {what} ({mimeType}, {size} KB): download
    </button>
  );
}

export function Result({ content, truncated }: { content: ContentPart[]; truncated: boolean }) {
  if (content.length === 0) return <p class="text-sm text-(--quiet)">The tool returned nothing.</p>;
  return (
    <div class="grid gap-3">
      {content.map((part, i) => (
        <Part key={i} part={part} />
      ))}
      {truncated && <p class="text-xs text-(--quiet)">The result was longer; the rest was cut off.</p>}
    </div>
  );
}
