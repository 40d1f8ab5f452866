import { useEffect, useState } from "preact/hooks";
import { messageOf, toast } from "../../app/toasts";
import t from "../../texts/choosing";
import { filled } from "../../texts/language";
import { Icon } from "../../ui/icon";
import type { AddableServer } from "../../wire";
import { answeringBud, changeTools, homeOverrides, loadServers } from "./choice";
import { namedServers } from "./choices";

/** Offers a server that the text names and that the chat does not use. */
export function MissingServer({
  text,
  conversationId,
}: {
  text: string;
  conversationId: string | undefined;
}) {
  const [addable, setAddable] = useState<readonly AddableServer[] | null>(null);
  const [dismissed, setDismissed] = useState<readonly string[]>([]);
  const bud = answeringBud.value?.id;
  const isWorthAsking = bud !== undefined && text.trim().length >= 3;
  useEffect(() => setAddable(null), [conversationId, bud, homeOverrides.value]);
  useEffect(() => {
    if (!isWorthAsking || addable !== null) return;
    let isCurrent = true;
    // It is a help and no more: without an answer nothing is offered.
    loadServers(conversationId).then(
      (found) => isCurrent && setAddable(found?.addable ?? []),
      () => isCurrent && setAddable([]),
    );
    return () => {
      isCurrent = false;
    };
  }, [isWorthAsking, addable, conversationId, bud]);
  const [named] = namedServers(text, addable ?? []).filter((one) => !dismissed.includes(one.id));
  if (!named) return null;
  return (
    <div class="composer-notice" role="status">
      <Icon name="plug" class="text-(--quiet)" />
      <span class="min-w-0 grow basis-56">
        {filled(t.isMissing, { server: <strong>{named.name}</strong> })}
      </span>
      <button
        type="button"
        class="btn btn-xs btn-outline-quiet"
        onClick={async () => {
          try {
            await changeTools(conversationId, { change: "add_server", server_id: named.id });
            setAddable((before) => (before ?? []).filter((one) => one.id !== named.id));
          } catch (error) {
            toast(messageOf(error), "bad");
          }
        }}
      >
        {t.addIt}
      </button>
      <button
        type="button"
        class="btn btn-xs btn-quiet"
        onClick={() => setDismissed([...dismissed, named.id])}
      >
        {t.notNow}
      </button>
    </div>
  );
}
