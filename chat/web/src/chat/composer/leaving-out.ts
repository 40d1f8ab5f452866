/** What was chosen for a message, and is left out of it again. */
import { removeUnsent } from "../../artifacts/state";
import { isFile, type Picked, pickFile } from "../../store/attachments";
import { dropPicked, takeAlong } from "../../store/picked";

/** A file that came for this message alone leaves the chat with it: models read what is in a chat. */
export function leaveOut(draft: string, one: Picked): void {
  dropPicked(draft, one);
  if (!isFile(one) || !one.is_new) return;
  void removeUnsent(one.artifact_id, one.title, (artifact) =>
    takeAlong(draft, { ...pickFile(artifact), is_new: true }),
  );
}
