/** What is said of files: kinds, sizes, origins. Pure. */
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
  binary: "file",
};

const WORD_OF: Record<ArtifactKind, string> = {
  text: "Text",
  markdown: "Markdown",
  code: "Code",
  html: "Web page",
  svg: "Drawing",
  csv: "Table",
  json: "JSON",
  image: "Picture",
  pdf: "PDF",
  binary: "File",
};

export const kindWord = (kind: ArtifactKind): string => WORD_OF[kind] ?? WORD_OF.binary;

/** "820 B", "1.2 kB", "3.4 MB": as people count, in thousands. */
export function sizeWord(bytes: number): string {
  if (bytes < 1000) return `${bytes} B`;
  if (bytes < 999_500) return `${(bytes / 1000).toPrecision(3).replace(/\.?0+$/, "")} kB`;
  return `${(bytes / 1_000_000).toPrecision(3).replace(/\.?0+$/, "")} MB`;
}

/** Who made a version, and how. */
export function makerWord(version: ArtifactVersion): string {
  const who = version.made_by ?? "somebody";
  switch (version.origin) {
    case "model":
      return "written by the assistant";
    case "tool":
      return "fetched from a server";
    case "upload":
      return `uploaded by ${who}`;
    case "edit":
      return `edited by ${who}`;
    case "restore":
      return `restored by ${who}`;
  }
}

const READABLE = new Set<ArtifactKind>(["text", "markdown", "code", "html", "svg", "csv", "json"]);
/** Whether there is a text to show, compare and edit. */
export const isReadable = (kind: ArtifactKind): boolean => READABLE.has(kind);

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
