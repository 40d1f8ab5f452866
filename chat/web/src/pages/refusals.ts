import t from "../texts/pages";

/** What htmx tells of an answer. */
interface Told {
  readonly ctx?: { readonly text?: string; readonly response?: { readonly headers?: Headers } };
}

/** Why a part of a page was not changed: in the server's words, which are plain text if they are meant for people. */
export function refusalOf(event: CustomEvent<Told>): string {
  const { ctx } = event.detail;
  const isText = ctx?.response?.headers?.get("Content-Type")?.startsWith("text/plain");
  return (isText && ctx?.text?.trim()) || t.requestFailed;
}
