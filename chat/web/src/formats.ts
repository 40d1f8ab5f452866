/**
 * How a moment and a number are written for whoever reads them: the one place that asks `Intl`. It is a setting of the
 * person, whose chosen parts the page carries in `data-formats`; the browser's own ways hold for the others. The server
 * writes the same (`workspaces.words.formats`).
 */

type Moment = string | number | Date;
type Shape = Intl.DateTimeFormatOptions;

/** What a person chose; an empty part says that they did not. */
export interface Choice {
  time_zone: string;
  date_format: string;
  clock: string;
  number_format: string;
}

const NOTHING: Choice = { time_zone: "", date_format: "", clock: "", number_format: "" };
let known: { carried: string | undefined; choice: Choice } = { carried: undefined, choice: NOTHING };

function chosen(): Choice {
  const carried = document.documentElement.dataset.formats;
  if (carried !== known.carried)
    known = { carried, choice: usable({ ...NOTHING, ...(JSON.parse(carried ?? "{}") as Partial<Choice>) }) };
  return known.choice;
}

/** A choice without the time zone, where this browser does not know it; the server may know more of them. */
function usable(choice: Choice): Choice {
  try {
    new Intl.DateTimeFormat(undefined, zone(choice));
    return choice;
  } catch {
    return { ...choice, time_zone: "" };
  }
}

const zone = ({ time_zone }: Choice): Shape => (time_zone ? { timeZone: time_zone } : {});

const hours = ({ clock }: Choice): Shape => (clock ? { hourCycle: clock === "12" ? "h12" : "h23" } : {});

const TIMES = { minute: "short", second: "medium", instant: "medium" } as const;

/** How exactly a moment is written; an instant is a time of day with its milliseconds. */
type Exactness = "day" | keyof typeof TIMES;

export const isExactness = (value: string): value is Exactness => value === "day" || value in TIMES;

/** "26 Nov 2026, 14:05", or as exactly as asked. */
export function moment(at: Moment, exactness: Exactness = "minute", choice = chosen()): string {
  if (exactness === "instant") return clock(at, exactness, { ...choice, clock: choice.clock || "24" });
  if (choice.date_format) {
    const day = written(numbersOf(at, choice), choice.date_format);
    return exactness === "day" ? day : `${day}, ${clock(at, exactness, choice)}`;
  }
  const time: Shape = exactness === "day" ? {} : { timeStyle: TIMES[exactness], ...hours(choice) };
  return new Date(at).toLocaleString(undefined, { dateStyle: "medium", ...time, ...zone(choice) });
}

/** The same in a time zone that words beside it name; null where this browser does not know it. */
export function momentIn(time_zone: string, at: Moment, exactness: Exactness): string | null {
  const choice = usable({ ...chosen(), time_zone });
  return choice.time_zone ? moment(at, exactness, choice) : null;
}

function clock(at: Moment, exactness: keyof typeof TIMES, choice: Choice): string {
  if (!choice.clock) {
    const shape: Shape = { timeStyle: TIMES[exactness], ...zone(choice) };
    return new Date(at).toLocaleTimeString(undefined, shape);
  }
  const { hour, minute, second, fractionalSecond } = numbersOf(at, choice);
  const rest = {
    minute,
    second: `${minute}:${second}`,
    instant: `${minute}:${second}.${fractionalSecond}`,
  }[exactness];
  if (choice.clock === "24") return `${hour}:${rest}`;
  return `${Number(hour) % 12 || 12}:${rest} ${Number(hour) < 12 ? "AM" : "PM"}`;
}

/** A day of the calendar, "2026-11-26", which is the same in every time zone. */
export const calendarDay = (date: string): string =>
  moment(`${date}T12:00:00Z`, "day", { ...chosen(), time_zone: "UTC" });

/** "November 2026". */
export const month = (at: Moment): string =>
  new Date(at).toLocaleDateString(undefined, { month: "long", year: "numeric", ...zone(chosen()) });

/** When the pieces of time begin that a chart counts in, as the server wrote them and as moments. */
export interface TimeAxis {
  labels: string[];
  starts: string[];
  unit: string;
  /** A name that `Intl` knows, if this browser does. */
  zone: string;
  has_year: boolean;
}

/** What stands under a chart: as the server wrote it for whoever chose a form of dates, else as the browser does. */
export function axisLabels(axis: TimeAxis): string[] {
  const choice = usable({ ...chosen(), time_zone: axis.zone });
  if (choice.date_format || !choice.time_zone) return axis.labels;
  const { unit } = axis;
  const shape: Shape = {
    month: "short",
    ...(unit !== "month" && ({ day: "numeric" } as const)),
    ...((axis.has_year || unit === "month") && ({ year: "numeric" } as const)),
    ...zone(choice),
  };
  return axis.starts.map((at) => {
    const day = new Date(at).toLocaleDateString(undefined, shape);
    if (unit === "minute") return clock(at, "minute", choice);
    return unit === "hour" ? `${day}, ${clock(at, "minute", choice)}` : day;
  });
}

const MONTHS = new Intl.DateTimeFormat("en-US", { month: "short", timeZone: "UTC" });

function written({ year, month, day }: Numbers, format: string): string {
  const name = MONTHS.format(Date.UTC(2000, Number(month) - 1));
  const parts: Record<string, string> = { YYYY: year, MMM: name, MM: month, DD: day, D: `${Number(day)}` };
  return format.replace(/YYYY|MMM|MM|DD|D/g, (part) => parts[part] ?? part);
}

type Numbers = Record<"year" | "month" | "day" | "hour" | "minute" | "second" | "fractionalSecond", string>;
const readers = new Map<string, Intl.DateTimeFormat>();
const DIGITS: Shape = {
  ...({ year: "numeric", month: "2-digit", day: "2-digit", hour: "2-digit" } as const),
  ...({ minute: "2-digit", second: "2-digit", fractionalSecondDigits: 3, hourCycle: "h23" } as const),
};

/** What calendar and clock show at a moment. */
function numbersOf(at: Moment, choice: Choice): Numbers {
  let reader = readers.get(choice.time_zone);
  if (!reader) {
    reader = new Intl.DateTimeFormat("en-US", { ...DIGITS, ...zone(choice) });
    readers.set(choice.time_zone, reader);
  }
  const parts = reader.formatToParts(new Date(at));
  return Object.fromEntries(parts.map(({ type, value }) => [type, value])) as Numbers;
}

const MS_OF_DAY = 86_400_000;

/** How many days of the reader's calendar lie between two moments; 0: it is the same day. */
export const daysBetween = (earlier: Moment, later: Moment): number =>
  (dayNumber(later) - dayNumber(earlier)) / MS_OF_DAY;

function dayNumber(at: Moment): number {
  const { year, month, day } = numbersOf(at, chosen());
  return Date.UTC(Number(year), Number(month) - 1, Number(day));
}

/** The hour of the reader's day, 0 to 23. */
export const hourOf = (at: Moment): number => Number(numbersOf(at, chosen()).hour);

/** A moment as a field for date and time holds it, in the reader's time zone: "2026-11-26T14:05", or with seconds. */
export function typed(at: Moment, exactness: "minute" | "second" = "minute"): string {
  const { year, month, day, hour, minute, second } = numbersOf(at, chosen());
  const time = exactness === "second" ? `${hour}:${minute}:${second}` : `${hour}:${minute}`;
  return `${year.padStart(4, "0")}-${month}-${day}T${time}`;
}

/** The moment that somebody typed into such a field. */
export function momentOf(text: string): Date {
  if (!chosen().time_zone) return new Date(text);
  const wanted = Date.parse(`${text}Z`);
  // Beside a change of the clock the first guess may have the other offset.
  const guess = wanted - offset(wanted);
  return new Date(wanted - offset(guess));
}

/** By how many milliseconds the reader's clock is ahead of UTC at a moment. */
function offset(at: number): number {
  const { year, month, day, hour, minute, second } = numbersOf(at, chosen());
  const shown = Date.parse(`${year}-${month}-${day}T${hour}:${minute}:${second}Z`);
  return shown - Math.floor(at / 1000) * 1000;
}

/** What stands between groups of digits and before decimals; a line does not break inside a number. */
const SIGNS: Record<string, { group: string; decimal: string }> = {
  "1,234.5": { group: ",", decimal: "." },
  "1.234,5": { group: ".", decimal: "," },
  "1 234,5": { group: "\u00a0", decimal: "," },
};

function signed(english: string, { number_format }: Choice): string {
  const signs = SIGNS[number_format];
  return signs ? english.replace(/[,.]/g, (sign) => (sign === "," ? signs.group : signs.decimal)) : english;
}

/** "1,234". */
export function whole(count: number): string {
  const choice = chosen();
  return choice.number_format ? signed(count.toLocaleString("en-US"), choice) : count.toLocaleString();
}

/** A number as it is, without groups. */
export const plain = (value: number | string): string => signed(String(value), chosen());

/** A number with so many places after its decimal sign. */
export function decimal(value: number, places: number, choice = chosen()): string {
  if (!choice.number_format) return value.toFixed(places);
  const shape = { minimumFractionDigits: places, maximumFractionDigits: places };
  return signed(value.toLocaleString("en-US", shape), choice);
}

/** A moment and a number as somebody who makes this choice will read them. */
export function example(at: Moment, choice: Choice): string {
  const shown = usable(choice);
  const number = shown.number_format ? decimal(1234.5, 1, shown) : (1234.5).toLocaleString();
  return `${moment(at, "minute", shown)} · ${number}`;
}

const AGO = new Intl.RelativeTimeFormat(undefined, { numeric: "auto", style: "long" });

/** "2 hours ago", from so many seconds; "in 2 hours", where they are negative. */
export function ago(seconds: number): string {
  const away = Math.abs(seconds);
  if (away < 3600) return AGO.format(-Math.round(seconds / 60), "minute");
  if (away < MS_OF_DAY / 1000) return AGO.format(-Math.round(seconds / 3600), "hour");
  return AGO.format(-Math.round(seconds / (MS_OF_DAY / 1000)), "day");
}

/** The time zone that the browser is set to. */
export const browserTimeZone = (): string => Intl.DateTimeFormat().resolvedOptions().timeZone;
