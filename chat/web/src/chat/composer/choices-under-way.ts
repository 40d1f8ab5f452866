/** Choices for a chat that the server has not taken yet. What is sent next waits for them: it is meant for what was chosen. */

/** Of each chat: whether the server takes all of them. */
const last = new Map<string, Promise<boolean>>();
/** Longer than any answer takes; a line that is dead keeps no message for ever. */
const LONGEST_MS = 15_000;

/** Ask the server for one, after those before it. */
export function afterOthers<T>(conversationId: string, ask: () => Promise<T>): Promise<T> {
  const before = choicesTaken(conversationId);
  const asked = before.then(ask);
  const ended = asked
    .then(
      () => before,
      () => false, // whoever chose is told
    )
    .finally(() => {
      if (last.get(conversationId) === ended) last.delete(conversationId);
    });
  last.set(conversationId, ended);
  return asked;
}

/** Wait until the server has taken what was chosen so far. False: it did not take all of it. */
export async function choicesTaken(conversationId: string): Promise<boolean> {
  const underWay = last.get(conversationId);
  if (!underWay) return true;
  return Promise.race([underWay, new Promise<boolean>((resolve) => setTimeout(resolve, LONGEST_MS, true))]);
}
