import { useEffect, useState } from "preact/hooks";
import { messageOf, toast } from "../../app/toasts";
import { HOME } from "../../store/draft";
import { pickResource } from "../../store/picked";
import t from "../../texts/chat";
import { filled } from "../../texts/language";
import questions from "../../texts/questions";
import { Dialog, DialogButtons } from "../../ui/dialog";
import { Icon } from "../../ui/icon";
import type { Prompt } from "../../wire";
import { suggest as askForSuggestions, fillPrompt } from "./choice";
import { textOf, titleOf } from "./prompts";
import { SuggestField } from "./suggest-field";

/** What a prompt needs to know, and then its text for a look before it is sent. */
export function PromptDialog({
  prompt,
  conversationId,
  onClose,
  onText,
}: {
  prompt: Prompt;
  /** Absent: the conversation begins with the next message. */
  conversationId: string | undefined;
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
      const filled = await fillPrompt(conversationId, prompt, given);
      const { text, picked } = textOf(prompt, filled);
      for (const one of picked) pickResource(conversationId ?? HOME, one);
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
              askForSuggestions(conversationId, {
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
        <DialogButtons onCancel={onClose} label={t.insertPrompt} isBusy={isBusy} />
      </form>
    </Dialog>
  );
}
