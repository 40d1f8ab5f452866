/** What is said of files: kinds, sizes, origins. Pure. */
import common from "../texts/common";
import t from "../texts/files";
import type { IconName } from "../ui/icon";
import type { ArtifactKind, ArtifactVersion } from "../wire";

export const ICON_OF: Record<ArtifactKind, IconName> = {
  text: "fileText",
  markdown: "fileText",
  code: "fileCode",
  html: "fileCode",
  svg: "fileImage",
  csv: "fileTable",
  json: "fileCode",
  image: "fileImage",
  pdf: "file",
  document: "fileText",
  binary: "file",
};

export const kindWord = (kind: ArtifactKind): string => t.kinds[kind] ?? t.kinds.binary;

const KB = 1024;
const rounded = (size: number): string => String(Number(size.toPrecision(3)));

/** "820 B", "1.2 KB", "3.4 MB": as the server writes sizes and limits. */
export function sizeWord(bytes: number): string {
  if (bytes < KB) return common.bytes(bytes);
  if (bytes < KB * (KB - 0.5)) return common.kilobytes(rounded(bytes / KB));
  return common.megabytes(rounded(bytes / KB ** 2));
}

/** Who made a version, and how. */
export function makerWord(version: ArtifactVersion): string {
  const who = version.made_by ?? t.someone;
  switch (version.origin) {
    case "model":
      return t.writtenByModel;
    case "tool":
      return t.fetchedByTool;
    case "upload":
      return t.uploadedBy(who);
    case "edit":
      return t.editedBy(who);
    case "restore":
      return t.restoredBy(who);
  }
}

const READABLE = new Set<ArtifactKind>(["text", "markdown", "code", "html", "svg", "csv", "json"]);
/** Whether there is a text to show, compare and edit. */
export const isReadable = (kind: ArtifactKind): boolean => READABLE.has(kind);

/** Whether there is a text that was got out of it. */
export const isDocument = (kind: ArtifactKind): boolean => kind === "pdf" || kind === "document";

const RENDERED = new Set<ArtifactKind>(["markdown", "html", "svg", "csv", "json"]);
/** Whether it is shown as something else than its text. */
export const isRendered = (kind: ArtifactKind): boolean => RENDERED.has(kind);

/** Whether a page may have something to run. */
export const mayRun = (html: string): boolean => /<script|[\s"'/]on[a-z]+\s*=|javascript:/i.test(html);

const LANGUAGES: Record<string, string> = {
  bash: "bash",
  c: "c",
  cpp: "cpp",
  cs: "csharp",
  css: "css",
  diff: "diff",
  go: "go",
  h: "c",
  html: "xml",
  ini: "ini",
  java: "java",
  js: "javascript",
  json: "json",
  jsx: "javascript",
  kt: "kotlin",
  less: "less",
  lua: "lua",
  md: "markdown",
  mjs: "javascript",
  php: "php",
  pl: "perl",
  py: "python",
  r: "r",
  rb: "ruby",
  rs: "rust",
  scss: "scss",
  sh: "bash",
  sql: "sql",
  svg: "xml",
  swift: "swift",
  toml: "ini",
  ts: "typescript",
  tsx: "typescript",
  vb: "vbnet",
  vue: "xml",
  xml: "xml",
  yaml: "yaml",
  yml: "yaml",
  zsh: "bash",
};

/** The language whose colours a file's text gets; null for plain text. */
export function languageOf(name: string): string | null {
  const ending = /\.([^.]+)$/.exec(name)?.[1]?.toLowerCase();
  return (ending && LANGUAGES[ending]) || null;
}
