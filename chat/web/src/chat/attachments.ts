/** Resources on their way into a message: what was picked, and addresses made of templates. Pure. */
import type { Attachment, Resource } from "../wire";

/** A resource that the next message takes along. */
export interface Picked {
  server_id: string;
  server_name: string;
  uri: string;
  title: string;
  resource_id: string | null;
}

export const MOST_PICKED = 10;

export function pick(resource: Resource, uri = resource.uri): Picked {
  return {
    server_id: resource.server.id,
    server_name: resource.server.name,
    uri,
    title: resource.is_template ? uri : resource.title || resource.name || uri,
    resource_id: resource.id,
  };
}

export function pickAgain(attachment: Attachment): Picked {
  return {
    server_id: attachment.server.id,
    server_name: attachment.server.name,
    uri: attachment.uri,
    title: attachment.title || attachment.uri,
    resource_id: attachment.resource_id,
  };
}

export function withPicked(list: readonly Picked[], one: Picked): readonly Picked[] {
  const isKnown = list.some((other) => other.server_id === one.server_id && other.uri === one.uri);
  return isKnown || list.length >= MOST_PICKED ? list : [...list, one];
}

const EXPRESSION = /\{([+#./;?&]?)([^{}]+)\}/g;

/** The names of a template's variables (RFC 6570), each once. */
export function variablesOf(template: string): string[] {
  const names: string[] = [];
  for (const [, , list] of template.matchAll(EXPRESSION)) {
    for (const part of (list ?? "").split(",")) {
      const name = part.replace(/[*]$|:\d+$/, "").trim();
      if (name && !names.includes(name)) names.push(name);
    }
  }
  return names;
}

const STYLES: Record<string, { first: string; between: string; isNamed: boolean; keeps: boolean }> = {
  "": { first: "", between: ",", isNamed: false, keeps: false },
  "+": { first: "", between: ",", isNamed: false, keeps: true },
  "#": { first: "#", between: ",", isNamed: false, keeps: true },
  ".": { first: ".", between: ".", isNamed: false, keeps: false },
  "/": { first: "/", between: "/", isNamed: false, keeps: false },
  ";": { first: ";", between: ";", isNamed: true, keeps: false },
  "?": { first: "?", between: "&", isNamed: true, keeps: false },
  "&": { first: "&", between: "&", isNamed: true, keeps: false },
};

/** The address that a template gives for these values; what is empty is left out. */
export function expand(template: string, values: Readonly<Record<string, string>>): string {
  return template.replaceAll(EXPRESSION, (_, operator: string, list: string) => {
    const style = STYLES[operator] ?? STYLES[""];
    if (!style) return "";
    const parts = list.split(",").flatMap((part) => {
      const name = part.replace(/[*]$|:\d+$/, "").trim();
      const length = Number(/:(\d+)$/.exec(part)?.[1] ?? Number.POSITIVE_INFINITY);
      const value = (values[name] ?? "").slice(0, length);
      if (value === "") return [];
      const encoded = style.keeps ? encodeURI(value) : encodeURIComponent(value);
      return [style.isNamed ? `${name}=${encoded}` : encoded];
    });
    return parts.length > 0 ? style.first + parts.join(style.between) : "";
  });
}
