/** JSON on pages that Django draws, as the tree that the chat shows; without it the plain text stays. */
import { render } from "preact";
import type { Json } from "./wire";

export async function readableJson(box: HTMLElement): Promise<void> {
  box.dataset.drawn = "";
  const text = box.querySelector("pre")?.textContent ?? "";
  let value: Json;
  try {
    value = JSON.parse(text) as Json;
  } catch {
    return; // cut, or no JSON
  }
  const { JsonView } = await import("./chat/json-tree");
  box.replaceChildren();
  render(<JsonView value={value} />, box);
}

interface Part {
  type: string;
  text?: string | null;
  mime_type?: string | null;
  data?: string;
  uri?: string;
  name?: string;
}

const IMAGES = new Set(["image/png", "image/jpeg", "image/gif", "image/webp"]);
const SOUNDS = new Set(["audio/wav", "audio/x-wav", "audio/mpeg", "audio/mp3", "audio/ogg", "audio/webm"]);

/** What a tool gave back. Links are text: nothing that a server names is fetched. */
export async function drawResult(
  box: HTMLElement,
  parts: Part[],
  structured: Json | undefined,
): Promise<void> {
  const { JsonView } = await import("./chat/json-tree");
  const asJson = (text: string): Json | undefined => {
    try {
      const value = JSON.parse(text) as Json;
      return typeof value === "object" ? value : undefined;
    } catch {
      return undefined;
    }
  };
  const Shown = ({ part }: { part: Part }) => {
    const type = part.mime_type ?? "";
    if (part.type === "image" && IMAGES.has(type))
      return (
        <img class="result-image" src={`data:${type};base64,${part.data}`} alt="What the tool returned" />
      );
    if (part.type === "audio" && SOUNDS.has(type))
      return <audio class="w-full" controls preload="none" src={`data:${type};base64,${part.data}`} />;
    if (part.type === "resource_link" || part.type === "resource")
      return (
        <p class="text-sm break-all">
          {part.name || "Resource"}: <code>{part.uri}</code> {type && <span class="quiet">{type}</span>}
          {part.text && <pre class="body-text">{part.text}</pre>}
        </p>
      );
    if (part.type !== "text")
      return <p class="quiet">{`${part.type}, ${type || "of an unknown kind"}: not shown`}</p>;
    const value = asJson(part.text ?? "");
    return value === undefined ? (
      <pre class="body-text">{part.text || "(empty)"}</pre>
    ) : (
      <JsonView value={value} />
    );
  };
  box.replaceChildren();
  render(
    <div class="grid gap-3">
      {parts.map((part, index) => (
        <Shown key={index} part={part} />
      ))}
      {structured !== undefined && structured !== null && (
        <details open={parts.length === 0}>
          <summary class="help">Structured result</summary>
          <JsonView value={structured} />
        </details>
      )}
    </div>,
    box,
  );
}
