/** Pages that Django draws: what their scripts add. */
import { whole } from "../formats";
import { plural } from "./language";

const pages = {
  asText: "As text",
  selectRow: (name: string) => `Select ${name}`,
  showAll: "Show all",
  showLess: "Show less",
  copied: "Copied.",
  themeNotSaved: "The theme could not be saved. It holds until you leave this page.",
  unsentAtSignOut: (count: number) =>
    plural(count, {
      one: "A message was not sent yet. If you sign out, it is deleted from this browser.",
      other: "# messages were not sent yet. If you sign out, they are deleted from this browser.",
    }),
  signOutAnyway: "Sign out",
  found: (shown: number, all: number) => (shown === 0 ? "Nothing fits." : `${whole(shown)} of ${whole(all)}`),
  foundChoices: (shown: number, all: number) =>
    shown === 0 ? "Nothing fits." : `${whole(shown)} of ${whole(all)}. Enter chooses the first.`,
  putBack: "What you typed is back. It is not saved yet.",
  noPasskeys: "This browser has no passkeys. Try a newer one, or your phone.",
  passkeyThere: "This device has a passkey for your account already.",
  passkeyFailed: "The passkey did not work. Try again, or sign in another way.",
  requestFailed: "That did not work. Reload the page and try again.",
  connected: (server: string) => `Connected to ${server}.`,
  time: "Time",
  unknownValue: "–",
  filters: "Filters",
  pause: "Pause",
  resume: "Resume",
  live: "Live",
  liveStates: {
    on: "Live: on",
    paused: "Live: paused while you read",
    failed: "Live: Trellis does not answer, trying again",
  },

  // -- credentials of a server
  token: "Token",
  header: "Header",
  headerHelp: "Such as X-API-Key.",
  key: "Key",
  userName: "User name",
  password: "Password",
  clientId: "Client ID",
  clientIdHelp: "Only if you registered a client at the issuer yourself. Otherwise Trellis registers one.",
  clientSecret: "Client secret",
};

export default pages;
