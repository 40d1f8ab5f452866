import { afterEach, describe, expect, it } from "vitest";
import {
  axisLabels,
  type Choice,
  calendarDay,
  daysBetween,
  decimal,
  example,
  hourOf,
  moment,
  momentOf,
  month,
  plain,
  typed,
  whole,
} from "../src/formats";
import { localTimes } from "../src/pages/times";
import { headingFor } from "../src/sidebar/groups";

const AT = "2026-11-26T14:05:09.123Z";
const choose = (choice: Partial<Choice>) => {
  document.documentElement.dataset.formats = JSON.stringify(choice);
};

afterEach(() => {
  delete document.documentElement.dataset.formats;
});

describe("nothing chosen", () => {
  it("REL-851: everything is as the browser says", () => {
    const at = new Date(AT);
    expect(moment(AT)).toBe(at.toLocaleString(undefined, { dateStyle: "medium", timeStyle: "short" }));
    expect(moment(AT, "day")).toBe(at.toLocaleDateString(undefined, { dateStyle: "medium" }));
    expect(whole(1234)).toBe((1234).toLocaleString());
    expect(decimal(1.25, 1)).toBe((1.25).toFixed(1));
    expect(hourOf(AT)).toBe(at.getHours());
    expect(momentOf("2026-11-26T14:05").getTime()).toBe(new Date("2026-11-26T14:05").getTime());
  });
});

describe("a choice", () => {
  it.each([
    ["D MMM YYYY", "24", "26 Nov 2026, 23:05"],
    ["DD/MM/YYYY", "12", "26/11/2026, 11:05 PM"],
    ["MM/DD/YYYY", "24", "11/26/2026, 23:05"],
    ["YYYY-MM-DD", "12", "2026-11-26, 11:05 PM"],
  ])("REL-851: writes %s with %s hours as the server does", (date_format, clock, written) => {
    choose({ time_zone: "Asia/Tokyo", date_format, clock });
    expect(moment(AT)).toBe(written);
    expect(moment(AT, "second")).toBe(written.replace("05", "05:09"));
    expect(moment(AT, "day")).toBe(written.split(", ")[0]);
  });

  it("REL-851: may be of the time zone alone, or of the clock alone", () => {
    choose({ time_zone: "Asia/Tokyo" });
    const shape = { dateStyle: "medium", timeStyle: "short", timeZone: "Asia/Tokyo" } as const;
    expect(moment(AT)).toBe(new Date(AT).toLocaleString(undefined, shape));
    choose({ time_zone: "UTC", clock: "24" });
    expect(moment(AT)).toContain("14:05");
    choose({ time_zone: "UTC", clock: "12" });
    expect(moment(AT)).toMatch(/2:05\sPM/);
  });

  it("REL-851: knows midnight and noon", () => {
    choose({ time_zone: "UTC", clock: "12", date_format: "YYYY-MM-DD" });
    expect(moment("2026-11-26T00:05:00Z")).toBe("2026-11-26, 12:05 AM");
    expect(moment("2026-11-26T12:05:00Z")).toBe("2026-11-26, 12:05 PM");
    choose({ time_zone: "UTC", clock: "24", date_format: "YYYY-MM-DD" });
    expect(moment("2026-11-26T00:05:00Z")).toBe("2026-11-26, 00:05");
  });

  it("REL-851: writes instants of a trace with their milliseconds", () => {
    choose({ time_zone: "Asia/Tokyo" });
    expect(moment(AT, "instant")).toBe("23:05:09.123");
    choose({ time_zone: "Asia/Tokyo", clock: "12" });
    expect(moment(AT, "instant")).toBe("11:05:09.123 PM");
  });

  it("REL-851: leaves a day of the calendar in its place", () => {
    choose({ time_zone: "Pacific/Kiritimati", date_format: "DD/MM/YYYY" });
    expect(calendarDay("2026-11-26")).toBe("26/11/2026");
  });

  it("REL-851: decides which day it is, and which month", () => {
    choose({ time_zone: "Asia/Tokyo" });
    expect(daysBetween("2026-11-26T14:00:00Z", "2026-11-26T16:00:00Z")).toBe(1);
    expect(headingFor("2026-11-26T14:00:00Z", Date.parse("2026-11-26T16:00:00Z"))).toBe("Yesterday");
    expect(hourOf("2026-11-26T16:00:00Z")).toBe(1);
    expect(month("2026-11-30T16:00:00Z")).toContain("December");
    choose({ time_zone: "UTC" });
    expect(daysBetween("2026-11-26T14:00:00Z", "2026-11-26T16:00:00Z")).toBe(0);
  });

  it.each([
    ["1,234.5", "1,234,567", "1,234.50", "0.25"],
    ["1.234,5", "1.234.567", "1.234,50", "0,25"],
    ["1 234,5", "1\u00a0234\u00a0567", "1\u00a0234,50", "0,25"],
  ])("REL-851: writes numbers as %s", (number_format, grouped, decimals, small) => {
    choose({ number_format });
    expect(whole(1_234_567)).toBe(grouped);
    expect(decimal(1234.5, 2)).toBe(decimals);
    expect(plain(0.25)).toBe(small);
  });

  it("REL-851: holds for what people type into a field for date and time, also when the clock changes", () => {
    choose({ time_zone: "Europe/Zurich" });
    for (const [at, shown] of [
      ["2026-07-01T12:00:00.000Z", "2026-07-01T14:00"],
      ["2026-03-29T00:30:00.000Z", "2026-03-29T01:30"],
      ["2026-03-29T01:30:00.000Z", "2026-03-29T03:30"],
      ["2026-10-25T02:30:00.000Z", "2026-10-25T03:30"],
    ] as const) {
      expect(typed(at)).toBe(shown);
      expect(momentOf(shown).toISOString()).toBe(at);
    }
  });

  it("REL-851: with a time zone that this browser does not know uses the browser's own", () => {
    choose({ time_zone: "Middle/Earth", date_format: "YYYY-MM-DD" });
    const at = new Date(2026, 10, 26, 14, 5);
    expect(moment(at, "day")).toBe("2026-11-26");
  });
});

describe("under a chart", () => {
  const axis = (unit: string, more = {}) => ({
    labels: ["as the server wrote it"],
    starts: ["2026-11-29T23:00:00Z"],
    unit,
    zone: "Europe/Vienna",
    has_year: false,
    ...more,
  });
  const browsers = (shape: Intl.DateTimeFormatOptions) =>
    new Date("2026-11-29T23:00:00Z").toLocaleString(undefined, { ...shape, timeZone: "Europe/Vienna" });

  it("REL-2341: a piece of time is written like the browser's other moments, in the chart's time zone", () => {
    const day = browsers({ month: "short", day: "numeric" });
    const time = browsers({ timeStyle: "short" });
    expect(axisLabels(axis("day"))).toEqual([day]);
    expect(axisLabels(axis("week", { has_year: true }))).toEqual([
      browsers({ month: "short", day: "numeric", year: "numeric" }),
    ]);
    expect(axisLabels(axis("month"))).toEqual([browsers({ month: "short", year: "numeric" })]);
    expect(axisLabels(axis("hour"))).toEqual([`${day}, ${time}`]);
    expect(axisLabels(axis("minute"))).toEqual([time]);
  });

  it("REL-2341: as the server wrote it for whoever chose a form, and in a time zone that the browser lacks", () => {
    expect(axisLabels(axis("day", { zone: "Mars/Olympus" }))).toEqual(["as the server wrote it"]);
    choose({ date_format: "D MMM YYYY" });
    expect(axisLabels(axis("day"))).toEqual(["as the server wrote it"]);
  });
});

it("REL-851: the example is what the choice will look like, before it is saved", () => {
  const choice = {
    time_zone: "Asia/Tokyo",
    date_format: "DD/MM/YYYY",
    clock: "12",
    number_format: "1.234,5",
  };
  expect(example(AT, choice)).toBe("26/11/2026, 11:05 PM · 1.234,5");
  expect(example(AT, { ...choice, date_format: "", clock: "" })).toContain("1.234,5");
});

it("REL-2341: a moment beside words that name a time zone is in that one, in the form of all others", () => {
  const page = document.createElement("div");
  const show = () => {
    page.innerHTML = ["UTC", "Mars/Olympus"]
      .map(
        (zone) => `<time datetime="${AT}" data-local="minute" data-zone="${zone}">as the server says</time>`,
      )
      .join("");
    localTimes(page);
    return [...page.children].map((one) => one.textContent);
  };
  const shape = { dateStyle: "medium", timeStyle: "short", timeZone: "UTC" } as const;
  expect(show()).toEqual([new Date(AT).toLocaleString(undefined, shape), "as the server says"]);
  choose({ time_zone: "Asia/Tokyo", date_format: "DD/MM/YYYY", clock: "24" });
  expect(show()).toEqual(["26/11/2026, 14:05", "as the server says"]);
});

it("REL-853: moments of the server's pages follow the choice, as exactly as the server wrote them", () => {
  choose({ time_zone: "Asia/Tokyo", date_format: "DD/MM/YYYY", clock: "24" });
  const page = document.createElement("div");
  page.innerHTML = ["day", "minute", "second", "instant", "never"]
    .map((exactness) => `<time datetime="${AT}" data-local="${exactness}">as the server says</time>`)
    .join("");
  localTimes(page);
  expect([...page.children].map((one) => one.textContent)).toEqual([
    "26/11/2026",
    "26/11/2026, 23:05",
    "26/11/2026, 23:05:09",
    "23:05:09.123",
    "as the server says",
  ]);
});
