/** Results that say the same twice: servers give structured content as text as well, for older clients. Pure. */
import type { Json } from "../../wire";
import { asJson, sameJson } from "./arguments";

/** Whether data holds what a text says too; many servers put it into an object under the name `result`. */
export function saysTheSame(
  content: readonly { type: string; text?: string | null }[],
  structured: Json | undefined,
): boolean {
  if (structured === undefined) return false;
  const isWrapped = structured !== null && typeof structured === "object" && !Array.isArray(structured);
  const names = isWrapped ? Object.keys(structured) : [];
  const inner = isWrapped && names.length === 1 && names[0] === "result" ? structured.result : undefined;
  const texts = content.filter((part) => part.type === "text").map((part) => part.text ?? "");
  const isSame = (text: string, value: Json): boolean => {
    const read = asJson(text);
    const isPlain = value === null || typeof value !== "object";
    return (isPlain && text === String(value)) || (read !== undefined && sameJson(read, value));
  };
  if (texts.some((text) => isSame(text, structured))) return true;
  if (inner === undefined) return false;
  if (texts.some((text) => isSame(text, inner))) return true;
  return (
    Array.isArray(inner) &&
    inner.length === texts.length &&
    inner.every((value, at) => isSame(texts[at] ?? "", value))
  );
}
