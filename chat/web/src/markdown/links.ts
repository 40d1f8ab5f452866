/** Which addresses may be links. Apart from the renderer, since pages that render nothing show links too. Pure. */

export const LINK = /^(?:https?:\/\/|mailto:)/i;

/** Programs and contents in place of an address: nobody can do anything with them. */
const NO_PLACE = /^(?:javascript|vbscript|data|blob):/i;
const LONGEST_SHOWN = 200;

/** What tells where something leads that may be no link, such as a telephone number; "": nothing that anybody can use. */
export function placeOf(href: string): string {
  const clean = href.replace(
    /[\u0000-\u0020\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2066-\u2069\ufeff]/g,
    "",
  );
  if (NO_PLACE.test(clean)) return "";
  return clean.length > LONGEST_SHOWN ? `${clean.slice(0, LONGEST_SHOWN)}…` : clean;
}

/** The address of a link if it may be one, else null. */
export function safeHref(href: string): string | null {
  // Browsers drop tabs, newlines and leading control characters from addresses, so they go before the check.
  const clean = href.replace(/[\u0000-\u0020\u007f-\u009f\u200b-\u200f\u2028\u2029\ufeff]/g, "");
  if (!LINK.test(clean)) return null;
  if (/^mailto:/i.test(clean)) return clean;
  try {
    return new URL(clean).href;
  } catch {
    return null;
  }
}
