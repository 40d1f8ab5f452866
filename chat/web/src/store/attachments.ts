/** What is on its way into a message: resources, files, and addresses made of templates. Pure. */
import type { Artifact, ArtifactKind, Attachment, FileName, Resource, ResourceName } from "../wire";

/** A resource that the next message takes along. */
export interface PickedResource {
  server_id: string;
  server_name: string;
  uri: string;
  title: string;
  resource_id: string | null;
}

/** A file of the conversation that the next message takes along. */
interface PickedFile {
  artifact_id: string;
  version: number;
  title: string;
  kind: ArtifactKind;
  size: number;
  /** It was uploaded for this message, and none has it yet. */
  is_new?: boolean;
}

export type Picked = PickedResource | PickedFile;

export const MOST_PICKED = 10;

export const isFile = (one: Picked): one is PickedFile => "artifact_id" in one;

/** What two of the same have in common. */
export const keyOf = (one: Picked): string =>
  isFile(one) ? `${one.artifact_id} ${one.version}` : `${one.server_id} ${one.uri}`;

/** As the command names it. */
export function nameOf(one: Picked): ResourceName | FileName {
  if (isFile(one)) return { artifact_id: one.artifact_id, version: one.version };
  return { server_id: one.server_id, uri: one.uri, resource_id: one.resource_id };
}

export function pickFile({ id, name, version }: Artifact): PickedFile {
  const { number, kind, size } = version;
  return { artifact_id: id, version: number, title: name, kind, size };
}

export function pick(resource: Resource, uri = resource.uri): PickedResource {
  return {
    server_id: resource.server.id,
    server_name: resource.server.name,
    uri,
    title: resource.is_template ? uri : resource.title || resource.name || uri,
    resource_id: resource.id,
  };
}

export function pickAgain(attachment: Attachment, server: { id: string; name: string }): PickedResource {
  return {
    server_id: server.id,
    server_name: server.name,
    uri: attachment.uri,
    title: attachment.title || attachment.uri,
    resource_id: attachment.resource_id,
  };
}

export function withPicked(list: readonly Picked[], one: Picked): readonly Picked[] {
  const isKnown = list.some((other) => keyOf(other) === keyOf(one));
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
