/**
 * Mermaid diagrams. Mermaid runs in a frame without our origin and without a network, whose address the page carries in `data-diagrams`, and its drawing
 * comes back as text. The page shows it as a picture: in one, nothing runs and nothing is fetched.
 */
import code from "@mermaid-js/tiny/dist/mermaid.tiny.js?url";
import { isDark } from "../browser/theme";
import t from "../texts/reading";

const LONGEST = 20_000;
const LARGEST = 2_000_000;
const PATIENCE_MS = 15_000;

type Answer = { id: number; svg?: unknown };

let painter: Promise<Window> | undefined;
let count = 0;

/** The frame, with Mermaid in it. */
function openPainter(): Promise<Window> {
  return new Promise((resolve, reject) => {
    const frame = document.createElement("iframe");
    frame.className = "diagram-painter";
    frame.setAttribute("sandbox", "allow-scripts");
    frame.setAttribute("aria-hidden", "true");
    frame.tabIndex = -1;
    frame.src = document.body.dataset.diagrams ?? "";
    const give = () => {
      frame.remove();
      painter = undefined;
      reject(new Error("frame"));
    };
    frame.addEventListener("error", give);
    frame.addEventListener("load", async () => {
      try {
        const answer = await fetch(code);
        if (!answer.ok || !frame.contentWindow) return give();
        const text = await answer.text();
        // The frame has no origin that one could name.
        frame.contentWindow.postMessage({ code: text }, "*");
        resolve(frame.contentWindow);
      } catch {
        give();
      }
    });
    document.body.append(frame);
  });
}

/** One at a time: what a broken one leaves behind is not the next one's. */
let line: Promise<unknown> = Promise.resolve();

function paint(text: string, theme: "dark" | "light"): Promise<string | null> {
  const mine = line.then(() => paintNow(text, theme));
  line = mine.catch(() => undefined);
  return mine;
}

async function paintNow(text: string, theme: "dark" | "light"): Promise<string | null> {
  painter ??= openPainter();
  const target = await painter;
  count += 1;
  const id = count;
  return new Promise((resolve) => {
    const end = (svg: string | null) => {
      removeEventListener("message", hear);
      clearTimeout(limit);
      resolve(svg);
    };
    const hear = (event: MessageEvent<Answer>) => {
      if (event.source !== target || event.data?.id !== id) return;
      const { svg } = event.data;
      end(typeof svg === "string" && svg.length <= LARGEST ? svg : null);
    };
    const limit = setTimeout(() => {
      // It may be busy for ever: the next diagram gets a new one.
      document.querySelector("iframe.diagram-painter")?.remove();
      painter = undefined;
      end(null);
    }, PATIENCE_MS);
    addEventListener("message", hear);
    target.postMessage({ id, text, theme }, "*");
  });
}

/** How large a drawing wants to be; null where it is none. Read as text: parsed, its styles would fall under our policy. */
function sizeOf(svg: string): { width: number; height: number } | null {
  const root = /^\s*<svg\b[^>]*>/.exec(svg)?.[0] ?? "";
  const box = (/\sviewBox="([^"]*)"/.exec(root)?.[1] ?? "").split(/[\s,]+/).map(Number);
  const [width = 0, height = 0] = box.slice(2);
  return width > 0 && height > 0 ? { width: Math.ceil(width), height: Math.ceil(height) } : null;
}

/** Draw one; null where it cannot be drawn. */
export async function draw(text: string): Promise<HTMLImageElement | null> {
  if (text.length > LONGEST) return null;
  const svg = await paint(text, isDark() ? "dark" : "light");
  const size = svg && sizeOf(svg);
  if (!svg || !size) return null;
  const picture = document.createElement("img");
  picture.width = size.width;
  picture.height = size.height;
  picture.alt = t.diagram;
  picture.style.setProperty("--drawn", `${size.width}px`);
  const address = URL.createObjectURL(new Blob([svg], { type: "image/svg+xml" }));
  picture.src = address;
  try {
    await picture.decode();
  } catch {
    return null;
  } finally {
    URL.revokeObjectURL(address);
  }
  return picture;
}
