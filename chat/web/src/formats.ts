/** How a moment and a number are written for whoever reads them: the one place that asks `Intl`. */

type Moment = string | number | Date;
type Shape = Intl.DateTimeFormatOptions;

const SHAPES = {
  day: { dateStyle: "medium" },
  minute: { dateStyle: "medium", timeStyle: "short" },
  second: { dateStyle: "medium", timeStyle: "medium" },
  instant: { hour: "2-digit", minute: "2-digit", second: "2-digit", fractionalSecondDigits: 3 },
} satisfies Record<string, Shape>;

/** How exactly a moment is written; an instant is a time of day with its milliseconds. */
export type Exactness = keyof typeof SHAPES;

export const isExactness = (value: string): value is Exactness => value in SHAPES;

/** "26 Nov 2026, 14:05", or as exactly as asked. */
export const moment = (at: Moment, exactness: Exactness = "minute"): string =>
  new Date(at).toLocaleString(undefined, SHAPES[exactness]);

/** A day of the calendar, "2026-11-26", which is the same in every time zone. */
export const calendarDay = (date: string): string =>
  new Date(`${date}T12:00:00Z`).toLocaleDateString(undefined, { ...SHAPES.day, timeZone: "UTC" });

/** "November 2026". */
export const month = (at: Moment): string =>
  new Date(at).toLocaleDateString(undefined, { month: "long", year: "numeric" });

const MS_OF_DAY = 86_400_000;

/** How many days of the reader's calendar lie between two moments; 0: it is the same day. */
export function daysBetween(earlier: Moment, later: Moment): number {
  return (dayNumber(later) - dayNumber(earlier)) / MS_OF_DAY;
}

function dayNumber(at: Moment): number {
  const date = new Date(at);
  return Date.UTC(date.getFullYear(), date.getMonth(), date.getDate());
}

/** The hour of the reader's day, 0 to 23. */
export const hourOf = (at: Moment): number => new Date(at).getHours();

/** "1,234". */
export const whole = (count: number): string => count.toLocaleString();

/** A number as it is, without groups. */
export const plain = (value: number | string): string => String(value);

/** A number with so many places after its decimal sign. */
export const decimal = (value: number, places: number): string => value.toFixed(places);

const AGO = new Intl.RelativeTimeFormat(undefined, { numeric: "auto", style: "long" });

/** "2 hours ago", from so many seconds. */
export function ago(seconds: number): string {
  if (seconds < 3600) return AGO.format(-Math.round(seconds / 60), "minute");
  if (seconds < MS_OF_DAY / 1000) return AGO.format(-Math.round(seconds / 3600), "hour");
  return AGO.format(-Math.round(seconds / (MS_OF_DAY / 1000)), "day");
}

/** The time zone that the browser is set to. */
export const browserTimeZone = (): string => Intl.DateTimeFormat().resolvedOptions().timeZone;
