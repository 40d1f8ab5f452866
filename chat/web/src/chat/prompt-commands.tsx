import { useEffect, useState } from "preact/hooks";
import { api, messageOf, pickResource, toast } from "../app";
import t from "../texts/chat";
import choosing from "../texts/choosing";
import common from "../texts/common";
import { filled } from "../texts/language";
import questions from "../texts/questions";
import { Dialog } from "../ui/dialog";
import { Icon, type IconName } from "../ui/icon";
import type { Prompt } from "../wire";
import { type CommandName, matchingCommands } from "./choices";
import { matching, textOf, titleOf, typedCommand } from "./prompts";
import { SuggestField } from "./suggest-field";

/** A command of the chat by its name, or a prompt of a server. */
export type Offer = CommandName | Prompt;

interface Commands {
  /** What the menu shows; null: no command is being typed. */
  shown: Offer[] | null;
  at: number;
  setAt: (at: number) => void;
  dismiss: () => void;
}

/** The prompts that fit what is being typed after a slash; read once per conversation. */
export function useCommands(conversationId: string | undefined, text: string): Commands {
  const [prompts, setPrompts] = useState<Prompt[] | null>(null);
  const [at, setAt] = useState(0);
  const [dismissed, setDismissed] = useState<string | null>(null);
  const typed = typedCommand(text);
  const isTyping = typed !== null;
  useEffect(() => setPrompts(null), [conversationId]);
  useEffect(() => {
    if (!isTyping || !conversationId || prompts !== null) return;
    let isCurrent = true;
    api.prompts(conversationId).then(
      (rows) => isCurrent && setPrompts(rows),
      (error) => {
        if (!isCurrent) return;
        setPrompts([]);
        toast(messageOf(error), "bad");
      },
    );
    return () => {
      isCurrent = false;
    };
  }, [isTyping, conversationId, prompts]);
  useEffect(() => setAt(0), [typed]);
  const isOpen = typed !== null && dismissed !== text;
  const shown = isOpen ? [...matchingCommands(typed), ...matching(prompts ?? [], typed)] : null;
  return {
    shown,
    at: Math.max(0, Math.min(at, (shown?.length ?? 0) - 1)),
    setAt,
    dismiss: () => setDismissed(text),
  };
}

const COMMAND_ICONS: Record<CommandName, IconName> = {
  bud: "sprout",
  model: "sparkles",
  file: "paperclip",
  search: "search",
  tools: "plug",
  new: "compose",
};

export const COMMANDS_ID = "composer-commands";
export const commandId = (at: number): string => `${COMMANDS_ID}-${at}`;

export function CommandMenu({
  shown,
  at,
  onChoose,
}: {
  shown: Offer[];
  at: number;
  onChoose: (offer: Offer) => void;
}) {
  useEffect(() => {
    document.getElementById(commandId(at))?.scrollIntoView({ block: "nearest" });
  }, [at]);
  return (
    <div class="commands" id={COMMANDS_ID} role="listbox" aria-label={choosing.commands}>
      {shown.length === 0 && <p class="p-3 text-sm text-(--quiet)">{choosing.noCommand}</p>}
      {shown.map((offer, i) => (
        <div
          key={typeof offer === "string" ? offer : offer.id}
          id={commandId(i)}
          class="search-row"
          role="option"
          tabIndex={-1}
          aria-selected={i === at}
          onMouseDown={(event) => {
            event.preventDefault(); // the focus stays where one types
            onChoose(offer);
          }}
        >
          <OfferFace offer={offer} />
        </div>
      ))}
    </div>
  );
}

function OfferFace({ offer }: { offer: Offer }) {
  if (typeof offer === "string") {
    return (
      <>
        <Icon name={COMMAND_ICONS[offer]} class="text-(--quiet)" />
        <span class="min-w-0 grow truncate">
          <span class="font-medium">/{offer}</span>{" "}
          <span class="text-xs text-(--quiet)">{choosing.commandTitles[offer]}</span>
        </span>
      </>
    );
  }
  return (
    <>
      <Icon name="slash" class="text-(--quiet)" />
      <span class="min-w-0 grow">
        <span class="block truncate">
          <span class="font-medium">{titleOf(offer)}</span>{" "}
          <span class="text-xs text-(--quiet)">{offer.server.name}</span>
        </span>
        {offer.description && <span class="block truncate text-xs text-(--quiet)">{offer.description}</span>}
      </span>
    </>
  );
}

/** What a prompt needs to know, and then its text for a look before it is sent. */
export function PromptDialog({
  prompt,
  conversationId,
  onClose,
  onText,
}: {
  prompt: Prompt;
  conversationId: string;
  onClose: () => void;
  onText: (text: string) => void;
}) {
  const [values, setValues] = useState<Record<string, string>>({});
  const [isBusy, setBusy] = useState(false);
  const [problem, setProblem] = useState<string | null>(null);
  const [wasTried, setTried] = useState(false);
  const missing = prompt.arguments.filter((one) => one.required && !(values[one.name] ?? "").trim());
  const fill = async () => {
    setTried(true);
    if (missing.length > 0 || isBusy) return;
    setBusy(true);
    try {
      const given = Object.fromEntries(Object.entries(values).filter(([, value]) => value !== ""));
      const filled = await api.fillPrompt(conversationId, prompt.id, given);
      const { text, picked } = textOf(prompt, filled);
      for (const one of picked) pickResource(conversationId, one);
      for (const warning of filled.warnings) toast(warning, "info");
      onText(text);
      onClose();
    } catch (error) {
      setProblem(messageOf(error));
      setBusy(false);
    }
  };
  useEffect(() => {
    if (prompt.arguments.length === 0) void fill();
  }, []);
  return (
    <Dialog title={titleOf(prompt)} onClose={onClose}>
      <form
        class="grid gap-4 p-5 pt-3"
        noValidate
        onSubmit={(event) => {
          event.preventDefault();
          void fill();
        }}
      >
        <p class="text-sm text-(--quiet) break-words">
          {prompt.description} {filled(t.promptOf, { server: <strong>{prompt.server.name}</strong> })}
        </p>
        {prompt.arguments.map((one, i) => (
          <SuggestField
            key={one.name}
            name={one.name}
            label={one.title || one.name}
            help={one.description}
            required={one.required}
            isFirst={i === 0}
            value={values[one.name] ?? ""}
            problem={wasTried && missing.includes(one) ? questions.required : undefined}
            onInput={(value) => setValues({ ...values, [one.name]: value })}
            suggest={(value) =>
              api.complete(conversationId, {
                kind: "prompt",
                id: prompt.id,
                argument: one.name,
                value,
                context: Object.fromEntries(Object.entries(values).filter(([name]) => name !== one.name)),
              })
            }
          />
        ))}
        {problem && (
          <p class="notice" data-tone="bad" role="alert">
            <Icon name="alert" />
            <span>{problem}</span>
          </p>
        )}
        <div class="flex justify-end gap-2">
          <button type="button" class="btn btn-outline-quiet" onClick={onClose}>
            {common.cancel}
          </button>
          <button type="submit" class="btn btn-primary" disabled={isBusy}>
            {isBusy && <Icon name="loader" class="animate-spin" />}
            {t.insertPrompt}
          </button>
        </div>
      </form>
    </Dialog>
  );
}
