/** Copying by a shortcut: the newest answer, and the newest piece of code in the answers that are loaded. */

import { toast } from "../../app/toasts";
import { openTimeline } from "../../store/open-conversation";
import type { AnswerItem } from "../../store/timeline";
import common from "../../texts/common";
import t from "../../texts/shortcuts";
import { copyText } from "../../ui/copy-text";

function answersFromNewest(): AnswerItem[] {
  return openTimeline.value
    .flatMap((item) => (item.kind === "answer" ? [item] : item.kind === "comparison" ? item.answers : []))
    .reverse();
}

/** What the newest answer that has some says. */
async function newest(read: (text: string) => string | undefined): Promise<string | undefined> {
  const { isDone, textOf } = await import("./answer-body");
  for (const answer of answersFromNewest()) {
    const found = isDone(answer) && read(textOf(answer));
    if (found) return found;
  }
  return undefined;
}

async function copyOrSay(text: string | undefined, none: string): Promise<void> {
  if (!text) toast(none, "bad");
  else if (await copyText(text)) toast(common.copied, "ok");
}

export async function copyLastAnswer(): Promise<void> {
  await copyOrSay(await newest((text) => text), t.nothingToCopy);
}

export async function copyLastCode(): Promise<void> {
  const { codeIn } = await import("../../markdown/render");
  await copyOrSay(await newest((text) => codeIn(text).at(-1)), t.noCodeToCopy);
}
