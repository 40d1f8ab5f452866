/** Choices for a chat that the server has not taken yet. What is sent next waits for them: it is meant for what was chosen. */

const last = new Map<string, Promise<unknown>>();
/** Longer than any answer takes; a line that is dead keeps no message for ever. */
const LONGEST_MS = 15_000;

/** Ask the server for one, after those before it. */
export function afterOthers<T>(conversationId: string, ask: () => Promise<T>): Promise<T> {
  const asked = choicesTaken(conversationId).then(ask);
  const ended = asked
    .catch(() => undefined) // whoever chose is told
    .then(() => {
      if (last.get(conversationId) === ended) last.delete(conversationId);
    });
  last.set(conversationId, ended);
  return asked;
}

/** Wait until the server has taken or refused what was chosen so far. */
export async function choicesTaken(conversationId: string): Promise<void> {
  const underWay = last.get(conversationId);
  if (underWay) await Promise.race([underWay, new Promise((resolve) => setTimeout(resolve, LONGEST_MS))]);
}
