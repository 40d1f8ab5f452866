/** Around the conversation: the sidebar, its menus and dialogs, search, shortcuts, the state of the connection. */
import { plural } from "./language";

const erasedAfter = (days: number) =>
  plural(days, {
    one: "It is erased for good after # day.",
    other: "It is erased for good after # days.",
  });

const shell = {
  skip: "Skip to the message field",
  openSidebar: "Open the sidebar",
  closeSidebar: "Close the sidebar",
  hideSidebar: "Hide the sidebar",

  // -- the list of chats
  chats: "Chats",
  loadingChats: "Loading chats",
  archiveEmpty: "The archive is empty.",
  chatsEmpty: "Your chats will be listed here.",
  showOlder: "Show older chats",
  servers: "Servers",
  archive: "Archive",
  backToChats: "Back to chats",
  pinned: "Pinned",
  today: "Today",
  yesterday: "Yesterday",
  last7Days: "Last 7 days",
  last30Days: "Last 30 days",

  // -- one chat
  moreFor: (title: string) => `More for ${title}`,
  untitled: "new chat",
  pin: "Pin",
  unpin: "Unpin",
  rename: "Rename",
  unarchive: "Unarchive",
  download: "Download as Markdown",
  downloadJson: "Download as JSON",
  print: "Print or save as PDF",
  delete: "Delete",
  answering: "answering",
  newAnswer: "new answer",
  unsent: "not sent yet",
  needsYou: "needs you",
  needsAdmin: "needs an admin",
  renameTitle: "Rename chat",
  title: "Title",
  deleteTitle: "Delete this chat?",
  deleteText: (days: number) =>
    days === 0
      ? "“{title}” is erased for good. You cannot bring it back. What runs in it is stopped. The audit log keeps what its tools did."
      : `“{title}” moves to “Recently deleted”. ${erasedAfter(days)} What runs in it is stopped. The audit log keeps what its tools did.`,
  archived: "Archived.",
  unarchived: "Moved back to your chats.",
  deleted: "Deleted.",
  deletedElsewhere: "This chat was deleted in another window or on another device.",
  erased: "Erased for good.",
  undo: "Undo",
  archivedTag: "Archived",
  archiveTitle: "Archived chats",
  recentlyDeleted: "Recently deleted",
  recentlyDeletedText: (days: number) =>
    plural(days, {
      one: "You can restore these chats for # day. Then they are erased for good.",
      other: "You can restore these chats for # days. Then they are erased for good.",
    }),
  nothingDeleted: "You have deleted nothing lately.",
  deletedAt: (when: string) => `Deleted ${when}`,
  restore: "Restore",
  restoreOf: (title: string) => `Restore “${title}”`,
  erase: "Erase",
  eraseOf: (title: string) => `Erase “${title}” for good`,
  reallyErase: "Erase for good",
  eraseAll: "Erase all…",
  eraseAllTitle: "Erase all deleted chats?",
  eraseAllText:
    "All chats under “Recently deleted” are erased for good. You cannot bring them back. The audit log keeps what their tools did.",
  allErased: "All deleted chats are erased for good.",
  temporary: "Temporary chat",
  temporaryText: (hours: number) =>
    plural(hours, {
      one: "It is not in your list, and is deleted # hour after its last activity. The audit log keeps its tool calls.",
      other:
        "It is not in your list, and is deleted # hours after its last activity. The audit log keeps its tool calls.",
    }),
  keep: "Keep this chat",
  kept: "Kept. You find it in your list.",
  temporaryGone: "This temporary chat was deleted.",
  forked: "This is a copy. The original conversation stays as it was.",
  forkedElsewhere: "The copy of the conversation is ready.",
  noAccess: "This conversation does not exist, or you do not have access to it.",

  // -- search
  searchTitle: "Search chats",
  searchPlaceholder: "Titles, messages, files and calls",
  filterBy: "Filter by",
  filters: {
    from: "the bud that answers",
    in: "a folder",
    has: "a file",
    tool: "a tool that was called, such as mail.send, or its server",
    before: "a date (2026-11-01) or an age (7d)",
    after: "a date (2026-11-01) or an age (7d)",
    is: "archived or pinned",
  } as Record<string, string>,
  file: "File",
  inCall: (tool: string) => `In a tool call, ${tool}`,
  inFile: (name: string) => `In a file, ${name}`,
  inArchive: "archived",
  results: "Results",
  nothingFound: (query: string) => `Nothing found for “${query}”.`,
  searchedInPart: "Of very long files and results of tools, only the beginning is searched.",
  noChats: "No chats yet.",
  moreFound: "There may be more. Add a word or a filter to find it.",

  // -- account
  switchWorkspace: (name: string) => `Workspace ${name}: switch`,
  workspaces: "Workspaces",
  allWorkspaces: "All workspaces",
  accountMenu: "Your account and settings",
  connections: "My connections",
  audit: "Audit",
  admin: "Admin",
  activity: "My activity",
  platformAudit: "Audit of the platform",
  confirmAddress: "Address not confirmed",
  settings: "Settings",
  password: "Password",
  tokens: "API tokens",
  signOut: "Sign out",
  theme: "Theme",
  themes: { system: "System", light: "Light", dark: "Dark" },

  // -- notices
  notices: "Notices",
  noticesUnread: (count: number) => plural(count, { one: "Notices, # unread", other: "Notices, # unread" }),
  manyUnread: "99+",
  markAllRead: "Mark all read",
  noticesFailed: "Trellis can't read or change your notices right now. Reload the page to try again.",
  allNotices: "All notices",
  noNotices: "Nothing yet. Alerts, and chats that people share with you, appear here.",
  unread: ", unread",

  permissions: "Tool permissions",

  // -- the connection
  reconnecting: "Reconnecting…",
  away: "No connection. What you write is kept in this browser and sent when it is back.",
  chatsAway: "Your chats show when the connection is back.",
  cannotSignOut: "You can sign out when the connection is back.",
  tryNow: "Try now",
  sessionEnded: "Your session has ended.",
  signInAgain: "Sign in again",
  shutOut: {
    forbidden: "You can no longer enter this workspace.",
    account_off: "Your account is switched off. Ask the people who run this installation of Trellis.",
    access_suspended: "Your access to this workspace is suspended. Ask an administrator.",
    workspace_suspended: "This workspace is suspended. This page goes on when it is open again.",
  },
  twoStepsNeeded: "This workspace requires two-step verification, and you have not turned it on.",
  turnOnTwoSteps: "Turn it on",
  roleChanged: "Your role in this workspace has changed.",
  toWorkspaces: "Go to your workspaces",
  tooManyPages:
    "This page is not live: you have too many pages of Trellis open. Close some of them, then try again.",
  closedByServer: "The server closed the connection because of something this page sent.",
  reload: "Reload",
};

export default shell;
