/** Sharing a chat with others. */
import { plural } from "./language";

const sharing = {
  share: "Share",
  shareMenu: "Share…",
  shareHere: "Share up to here…",
  shared: "Shared",
  sharedTitle: "Others can read this chat as it was when you shared it",
  title: "Share this chat",
  about:
    "Readers see your messages and the answers as they are now. Messages that you write later are not included.",
  aboutPart:
    "Readers see your messages and the answers up to the one that you chose. Later messages are not included.",

  audience: "Who can read it",
  people: "People you choose",
  workspace: (name: string) => `Everyone in ${name}`,
  link: "Anyone with the link",
  linkHelp: "Also people outside the workspace, without signing in.",
  search: "Find people by name or e-mail",
  noMatches: "No member matches.",
  foundPeople: "Members",
  chosen: (count: number) => plural(count, { one: "# person chosen", other: "# people chosen" }),

  include: "What is included",
  withFiles: "Files",
  withFilesHelp: "Attached files and those that answers made. Files are shared as they are.",
  withCalls: "What tools were asked and what they answered",
  withCallsHelp:
    "Otherwise readers see each tool's name and how it ended. What looks like a secret is masked, and files that a tool read stay out.",
  never:
    "Never included: what the model thought, the bud's instructions, content that servers attached, and which members approved a call.",
  ends: "Ends on",
  endsHelp: "Nobody can read it after that day.",

  submit: "Share",
  save: "Save changes",
  copyLink: "Copy link",
  linkUnreadable:
    "The link cannot be shown, because the encryption key that protected it is gone. It works for those who have it. For another one, stop sharing and share the chat again.",
  linkField: "Link",
  open: "Open",
  update: "Update",
  changed: "It has changed since then.",
  updatedOn: (moment: string) => `Readers see this chat as it was on ${moment}.`,
  ended:
    "Nobody can read it at the moment. Its date has passed, or the workspace no longer allows such links.",
  stop: "Stop sharing",
  stopText: "Nobody can read this chat by its link any more. Sharing it again makes a new link.",
  keep: "Keep sharing",

  isShared: "Shared. Copy the link to send it.",
  isSharedWithPeople: "Shared. They get a notice, and you can copy the link.",
  saved: "Saved.",
  updated: "Updated. Readers see the chat as it is now.",
  stopped: "Stopped. The link no longer works.",
  stoppedElsewhere: "This chat was unshared in another window or on another device.",
  loading: "Loading",
  mine: "All my shared chats",
};

export default sharing;
