import t from "../../texts/calls";
import type { Annotations } from "../../wire";

interface Badge {
  tone: "ok" | "warn" | "bad" | "info" | "muted";
  label: string;
}

/** What a tool does to the world, as its server describes it. Pure. */
export function badgesOf(annotations: Annotations): Badge[] {
  const { read_only, destructive, idempotent, open_world } = annotations;
  const badges: Badge[] = [];
  if (read_only) badges.push({ tone: "ok", label: t.readOnly });
  else if (destructive) badges.push({ tone: "bad", label: t.destructive });
  else if (read_only === false || destructive === false) badges.push({ tone: "warn", label: t.changesData });
  else badges.push({ tone: "warn", label: t.unknownEffects });
  if (open_world) badges.push({ tone: "info", label: t.reachesOutside });
  if (idempotent && !read_only) badges.push({ tone: "muted", label: t.safeToRepeat });
  return badges;
}

export function Badges({ annotations }: { annotations: Annotations }) {
  return (
    <>
      {badgesOf(annotations).map((badge) => (
        <span key={badge.label} class="tag" data-tone={badge.tone} title={t.asDescribed}>
          {badge.label}
        </span>
      ))}
    </>
  );
}
