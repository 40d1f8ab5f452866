/** Waiting times between attempts to connect, in seconds; the last one repeats. */
const STEPS = [1, 2, 4, 8, 16] as const;

/** Milliseconds before attempt `attempt` (0 is the first), with jitter so that many tabs do not come at once. */
export function reconnectDelay(attempt: number, random: () => number = Math.random): number {
  const seconds = STEPS[Math.min(attempt, STEPS.length - 1)] ?? 16;
  return Math.round(seconds * 1000 * (0.75 + random() * 0.5));
}
