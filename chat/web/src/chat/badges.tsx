import type { Annotations } from "../wire";

interface Badge {
  tone: "ok" | "warn" | "bad" | "info" | "muted";
  label: string;
}

/** What a tool does to the world, as its server describes it. Pure. */
export function badgesOf(annotations: Annotations): Badge[] {
  const { read_only, destructive, idempotent, open_world } = annotations;
  const badges: Badge[] = [];
  if (read_only) badges.push({ tone: "ok", label: "Read-only" });
  else if (destructive) badges.push({ tone: "bad", label: "Destructive" });
  else if (read_only === false || destructive === false) badges.push({ tone: "warn", label: "Changes data" });
  else badges.push({ tone: "warn", label: "Effects unknown" });
  if (open_world) badges.push({ tone: "info", label: "Reaches outside" });
  if (idempotent && !read_only) badges.push({ tone: "muted", label: "Safe to repeat" });
  return badges;
}

export function Badges({ annotations }: { annotations: Annotations }) {
  return (
    <>
      {badgesOf(annotations).map((badge) => (
        <span key={badge.label} class="tag" data-tone={badge.tone} title="As the server describes the tool">
          {badge.label}
        </span>
      ))}
    </>
  );
}
