import { useEffect, useState } from "preact/hooks";
import { decimal } from "../formats";
import t from "../texts/common";

/** The current time, renewed every `everyMs` while `isOn`. */
export function useNow(everyMs: number, isOn = true): number {
  const [now, setNow] = useState(Date.now());
  useEffect(() => {
    if (!isOn) return;
    setNow(Date.now());
    const timer = setInterval(() => setNow(Date.now()), everyMs);
    return () => clearInterval(timer);
  }, [everyMs, isOn]);
  return now;
}

/** A duration in words short enough for a line: "840 ms", "3.2 s", "2 min 5 s". */
export function duration(ms: number): string {
  if (ms < 1000) return t.milliseconds(Math.max(0, Math.round(ms)));
  if (ms < 10_000) return t.seconds(decimal(ms / 1000, 1));
  const seconds = Math.round(ms / 1000);
  if (seconds < 60) return t.seconds(seconds);
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60)
    return seconds % 60 ? `${t.minutes(minutes)} ${t.seconds(seconds % 60)}` : t.minutes(minutes);
  const hours = Math.floor(minutes / 60);
  return minutes % 60 ? `${t.hours(hours)} ${t.minutes(minutes % 60)}` : t.hours(hours);
}

/** How long ago, in whole minutes, hours or days. */
export function ago(ms: number): string {
  const minutes = Math.floor(Math.max(0, ms) / 60_000);
  if (minutes < 1) return t.justNow;
  if (minutes < 60) return t.minutesAgo(minutes);
  const hours = Math.floor(minutes / 60);
  return hours < 48 ? t.hoursAgo(hours) : t.daysAgo(Math.floor(hours / 24));
}
