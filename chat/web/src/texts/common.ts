/** Words that several areas share: buttons, states, units of time and size, failures of requests. */
import { plural } from "./language";

const common = {
  product: "Trellis",
  cancel: "Cancel",
  close: "Close",
  dismiss: "Dismiss",
  discard: "Discard",
  edit: "Edit",
  save: "Save",
  search: "Search",
  show: "Show",
  tryAgain: "Try again",
  undo: "Undo",
  loading: "Loading…",
  optional: "optional",
  none: "(none)",
  json: "JSON",
  newChat: "New chat",

  copy: "Copy",
  copied: "Copied",
  copyBlocked: "Your browser blocked copying.",

  justNow: "just now",
  anyMoment: "any moment now",
  milliseconds: (count: number) => `${count} ms`,
  seconds: (count: number | string) => `${count} s`,
  minutes: (count: number) => `${count} min`,
  hours: (count: number) => `${count} h`,
  minutesAgo: (count: number) => `${count} min ago`,
  hoursAgo: (count: number) => `${count} h ago`,
  daysAgo: (count: number) => plural(count, { one: "# day ago", other: "# days ago" }),
  left: (duration: string) => `${duration} left`,
  expired: "expired",

  bytes: (count: number) => `${count} B`,
  kilobytes: (count: string) => `${count} KB`,
  megabytes: (count: string) => `${count} MB`,

  failed: "Something went wrong. Try again.",
  offline: "Can't reach the server. Check your connection.",
  partMissing: "This part of the page did not load. Reload the page; what you typed is kept.",
  serverFailed: "The server had a problem and logged it. Try again in a moment.",
  failedWith: {
    401: "Your session has ended. Sign in again.",
    403: "You are not allowed to do that.",
    404: "This no longer exists, or you do not have access to it.",
    409: "Someone else changed this at the same time. Try again.",
    413: "A proxy between you and Trellis refuses this, because it is too large. Tell the people who run Trellis.",
    429: "Too many requests. Wait a moment and try again.",
  } as Record<number, string>,
  tooLong: "This is too large.",
  fieldProblem: (field: string, problem: string) => `${field}: ${problem}`,

  notConnected: "You are offline, so this was not done. Try again once you are connected.",
  noReply: "The server did not answer in time.",
  connectionLost: "The connection was lost before the server answered.",
  pageLeft: "You left the page.",

  imageOn: (name: string, host: string) => `Image “${name}” on ${host}`,
  image: "image",
  textBlock: "text",
};

export default common;
