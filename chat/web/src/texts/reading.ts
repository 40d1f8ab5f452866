/** What is read in answers: code, tables, diagrams, footnotes, and links that lead away. */
import { plural } from "./language";

const reading = {
  // -- code and diagrams
  wrap: "Wrap lines",
  lineAdded: "added",
  lineRemoved: "removed",
  diagram: "Diagram",
  drawing: "Drawing the diagram…",
  showSource: "Show source",
  notDrawn: "This diagram can't be drawn. Here is its source.",

  // -- tables
  copyCsv: "Copy as CSV",
  rows: (count: number) => plural(count, { one: "# row", other: "# rows" }),

  // -- footnotes
  toNote: (label: string) => `Footnote ${label}`,
  backToText: (label: string) => `Back to the text of footnote ${label}`,

  // -- links
  leaving: "Open this link?",
  leadsTo: "It leads to {host}. A model or a tool wrote it.",
  writesTo: "It starts an e-mail to {address}. A model or a tool wrote it.",
  looksLike: "The text of the link names another site.",
  trustHost: (host: string) => `Don't ask again for ${host} in this browser`,
  openLink: "Open link",
  copyAddress: "Copy address",
};

export default reading;
