/** How much room is kept for what comes a moment later. */

/** Lines of text that a formula of its own line is about as high as. Pure. */
export function linesOf(tex: string): number {
  const rows = tex.split("\\\\").length;
  if (rows > 1) return 2.5 + 1.2 * rows;
  return /\\([dt]?frac|int|sum|prod|lim|binom|begin)/.test(tex) ? 3.3 : 2.5;
}
