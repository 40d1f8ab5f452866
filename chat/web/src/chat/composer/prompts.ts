/** Prompts of servers as commands: which of them a few typed letters mean, and the text that comes of one. Pure. */

import type { Picked } from "../../store/attachments";
import t from "../../texts/chat";
import type { FilledPrompt, Prompt } from "../../wire";

export const titleOf = (prompt: Prompt): string => prompt.title || prompt.name;

/** Those whose name, title or server begins with, or else contains, what was typed. */
export function matching(prompts: readonly Prompt[], typed: string): Prompt[] {
  const rank = (prompt: Prompt): number => {
    const words = [prompt.name, prompt.title, prompt.server.name].map((word) => word.toLowerCase());
    if (words.some((word) => word.startsWith(typed))) return 0;
    return words.some((word) => word.includes(typed)) ? 1 : 2;
  };
  return prompts
    .map((prompt) => ({ prompt, rank: rank(prompt) }))
    .filter((one) => one.rank < 2)
    .sort((a, b) => a.rank - b.rank)
    .map((one) => one.prompt);
}

interface FilledText {
  text: string;
  /** Resources that the prompt holds: they go along as attachments. */
  picked: Picked[];
}

/** A filled prompt as text to look at before it is sent: messages of several roles say whose they are. */
export function textOf(prompt: Prompt, filled: FilledPrompt): FilledText {
  const picked: Picked[] = [];
  const pieces: { role: string; text: string }[] = [];
  for (const { role, content } of filled.messages) {
    if (content.type === "text") pieces.push({ role, text: content.text });
    else if (content.type === "resource" || content.type === "resource_link") {
      picked.push({
        server_id: prompt.server.id,
        server_name: prompt.server.name,
        uri: content.uri,
        title: content.uri,
        resource_id: null,
      });
    } else pieces.push({ role, text: t.leftOut(content.type) });
  }
  const isPlain = pieces.every((piece) => piece.role === "user");
  const text = pieces
    .map((piece) =>
      isPlain ? piece.text : piece.role === "user" ? t.byUser(piece.text) : t.byAssistant(piece.text),
    )
    .join("\n\n");
  return { text, picked };
}
