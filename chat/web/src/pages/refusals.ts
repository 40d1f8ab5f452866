import t from "../texts/pages";

/** What htmx tells of an answer. */
interface Told {
  readonly ctx?: { readonly text?: string; readonly response?: { readonly headers?: Headers } };
}

/** Why a part of a page was not changed: in the server's words, which are plain text if they are meant for people. */
export const refusalOf = ({ detail: { ctx } }: CustomEvent<Told>): string =>
  refusalIn(ctx?.text, ctx?.response?.headers);

/** The same of any answer for a part of a page. */
export function refusalIn(text: string | undefined, headers: Headers | undefined): string {
  const isText = headers?.get("Content-Type")?.startsWith("text/plain");
  return (isText && text?.trim()) || t.requestFailed;
}
