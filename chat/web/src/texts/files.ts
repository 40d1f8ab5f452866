/** The files of a conversation: their list, one of them, its versions. */
import { both, plural } from "./language";

const files = {
  count: (count: number) =>
    plural(count, { one: "# file of this conversation", other: "# files of this conversation" }),
  panel: "Files of this conversation",
  drop: "Drop files to add them to your message",
  dropHere: "Drop files to add them to this chat",
  open: "Open",
  deletedFile: "deleted",
  loading: "Loading the files",
  loadingFile: "Loading",
  pasted: "pasted",

  // -- the list
  title: "Files",
  add: "Add a file",
  uploading: "Uploading.",
  none: "No files yet",
  noneText: "Ask for a document, a table or a page, drop a file here, or add one.",
  about: (kind: string, size: string, version: number, maker: string) =>
    `${kind} · ${size} · version ${version}, ${maker}`,
  aboutOfCall: (kind: string, version: number, size: string) => `${kind} · version ${version} · ${size}`,
  more: (name: string) => `More about ${name}`,
  download: "Download",
  renameMore: "Rename…",
  rename: "Rename",
  delete: "Delete",
  notAdded: (name: string, why: string) => `“${name}” was not added. ${why}`,
  deleted: (name: string) => `Deleted “${name}”.`,

  // -- one file
  all: "All files",
  version: "Version",
  versionNumber: (number: number) => `Version ${number}`,
  versionNewest: (number: number) => `Version ${number} (newest)`,
  aboutVersion: (kind: string, size: string, maker: string, time: string) =>
    `${kind}, ${size}, ${maker} ${time}`,
  restore: "Restore",
  restored: (number: number) => `Version ${number} is the newest again.`,
  preview: "Preview",
  text: "Text",
  source: "Source",
  compare: "Compare",
  name: "Name of the file",
  content: (name: string) => `Content of ${name}`,
  kinds: {
    text: "Text",
    markdown: "Markdown",
    code: "Code",
    html: "Web page",
    svg: "Drawing",
    csv: "Table",
    json: "JSON",
    image: "Image",
    pdf: "PDF",
    document: "Document",
    binary: "File",
  },
  writtenByModel: "written by the assistant",
  fetchedByTool: "fetched from a server",
  uploadedBy: (person: string) => `uploaded by ${person}`,
  editedBy: (person: string) => `edited by ${person}`,
  restoredBy: (person: string) => `restored by ${person}`,
  someone: "someone",

  // -- its content
  scriptsRun: "The scripts of this page are running, isolated from your chats.",
  hasScripts: "This page has scripts. They do not run unless you start them.",
  runScripts: "Run scripts",
  previewOf: (name: string) => `Preview of ${name}`,
  brokenImage: "This image cannot be shown.",
  noPreview: "No preview for this kind of file",
  downloadInstead: "You can download it instead.",
  asRead: "This is the text that assistants read. {download}",
  downloadOriginal: "Download the original",
  empty: "This file is empty.",
  cut: "Only the beginning is shown. {download}",
  downloadWhole: "Download the whole file",
  moreInTable: (rows: number, columns: number) =>
    `The file has ${both([
      ...(rows > 0 ? [plural(rows, { one: "# more row", other: "# more rows" })] : []),
      ...(columns > 0 ? [plural(columns, { one: "# more column", other: "# more columns" })] : []),
    ])}.`,

  // -- a file of the bud
  openPlace: (name: string) => `Open ${name} at this place`,
  aboutKnowledge: (kind: string, size: string, lines: number) =>
    `${kind}, ${size}, ${plural(lines, { one: "# line", other: "# lines" })}. This is the text that the assistant reads.`,
  earlier: "Show what comes before",
  later: "Show what follows",

  // -- editing
  savedAs: (number: number) => `Saved as version ${number}.`,
  saveAs: (number: number) => `Save as version ${number}`,
  savedMeanwhile: (number: number, maker: string) =>
    `Version ${number} was saved in the meantime (${maker}). If you save yours, it becomes the newest. Both are kept.`,
  keepMine: "Keep editing mine",

  // -- comparing
  comparedWith: "Compared with",
  noDifference: "No difference",
  changes: (added: number, removed: number) => `${added} added, ${removed} removed`,
  differences: "Differences",
  equalLines: (count: number) => plural(count, { one: "# equal line", other: "# equal lines" }),
  moreLines: (count: number) => plural(count, { one: "# more line", other: "# more lines" }),
  lineAdded: "added: ",
  lineRemoved: "removed: ",
};

export default files;
