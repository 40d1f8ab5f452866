/** What every catalogue of texts needs: plurals, numbers, and texts with elements in them. */
import type { ComponentChildren } from "preact";
import { whole } from "../formats";

/** The language of the texts. Dates and numbers follow the reader's own settings. */
const LANGUAGE = "en";

const rules = new Intl.PluralRules(LANGUAGE);

type Forms = Partial<Record<Intl.LDMLPluralRule, string>> & { other: string };

/** The form for this many, with the number for each `#`. */
export function plural(count: number, forms: Forms): string {
  return (forms[rules.select(count)] ?? forms.other).replaceAll("#", whole(count));
}

/** A text with elements for its `{names}`. */
export function filled(text: string, parts: Record<string, ComponentChildren>): ComponentChildren[] {
  return text.split(/\{(\w+)\}/).map((piece, at) => (at % 2 === 1 ? parts[piece] : piece));
}

/** "rows and columns". */
export function both(parts: readonly string[]): string {
  return new Intl.ListFormat(LANGUAGE).format(parts);
}
