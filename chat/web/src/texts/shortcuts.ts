/** Keyboard shortcuts: what each does, and what the keys are called. */

const shortcuts = {
  title: "Keyboard shortcuts",
  all: "Shortcuts of all pages",
  or: "or",
  keys: {
    mod: "Ctrl",
    alt: "Alt",
    shift: "Shift",
    escape: "Esc",
    enter: "Enter",
    tab: "Tab",
    home: "Home",
    end: "End",
    arrowup: "↑",
    arrowdown: "↓",
  } as Record<string, string>,
  /** For screen readers, where the key shows a sign. */
  spoken: {
    "⌘": "Command",
    "↑": "Arrow up",
    "↓": "Arrow down",
    "/": "Slash",
    "'": "Apostrophe",
    "@": "At sign",
    "#": "Number sign",
    ".": "Full stop",
    ";": "Semicolon",
  } as Record<string, string>,

  chat: "Chat",
  chatKeys: {
    newChat: "New chat",
    temporaryChat: "New temporary chat",
    search: "Search chats",
    choose: "Choose bud and model",
    composer: "Go to the message field",
    copyAnswer: "Copy the last answer",
    copyCode: "Copy the last code block",
    print: "Print the open chat or save it as PDF",
    sidebar: "Hide or show the sidebar",
    settings: "Open your settings",
    list: "Show shortcuts",
  },
  noKeys: "None",
  nothingToCopy: "There is no answer to copy yet.",
  noCodeToCopy: "The answers shown here have no code block.",

  use: "Use the shortcuts of the chat",
  useHelp:
    "Switch them off if they get in the way of your browser, a screen reader or speech input. Keys in menus and fields still work.",
  change: "Change",
  changeOf: (what: string) => `Change the keys of “${what}”`,
  reset: "Reset",
  resetOf: (what: string) => `Give “${what}” its usual keys`,
  remove: "No keys",
  removeOf: (what: string) => `Let “${what}” have no keys`,
  resetAll: "Reset all keys",
  press: "Press the new keys. Esc cancels.",
  needsHeld: "Hold Ctrl, Command or Alt with it. You would press it while you write.",
  taken: (what: string) => `“${what}” has these keys. Press others, or change that one first.`,
  saved: "Saved.",
  isOff: "You have switched the shortcuts of the chat off.",

  message: "Writing a message",
  send: "Send",
  newLine: "New line",
  interrupt: "Interrupt the answer with this message",
  commands: "Commands and prompts, in an empty message",
  mention: "Ask another bud this once",
  takeAlong: "Take a file or a resource along",
  walkCommands: "Go through what is offered",
  takeCommand: "Take it",
  closeCommands: "Close the offers",

  changing: "Changing a message, a question or a comment",
  keep: "Save",
  dismiss: "Cancel",

  deciding: "Approvals",
  allow: "Allow the selected call once",

  found: "Search results",
  walkFound: "Go through the results",
  openFound: "Open the result",
  close: "Close",

  files: "Files beside the chat",
  saveFile: "Save the file",
  closeFile: "Close the panel",

  selecting: "Selecting several chats",
  stopSelecting: "Stop selecting",

  pages: "Other pages",
  walkMenu: "Go through an open menu",
  edgesOfMenu: "First and last entry of a menu",

  audit: "Audit log",
  walkOffers: "Go through the suggestions",
  takeOffer: "Take the suggestion",
  closeOffers: "Close the suggestions",

  admin: "Admin",
  searchAdmin: "Search pages and rows",
  searchList: "Search in the list",
};

export default shortcuts;
