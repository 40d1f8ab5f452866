/** What servers ask: forms and their problems, pages to open, questions to the model, sign-ins. */
import { plural } from "./language";

const questions = {
  // -- fields
  choose: "Choose…",
  yes: "Yes",
  no: "No",
  unset: "–",
  addItem: "Add item",
  removeItem: "Remove",
  secret: "This looks like a secret. A server should not ask for one in a form.",
  required: "This field is required.",
  number: "Enter a number.",
  wholeNumber: "Enter a whole number.",
  atLeast: (bound: number) => `Enter ${bound} or more.`,
  atMost: (bound: number) => `Enter ${bound} or less.`,
  fromList: "Choose a value from the list.",
  email: "Enter an e-mail address, such as name@example.com.",
  address: "Enter a full web address, such as https://example.com.",
  pickAtLeast: (count: number) => plural(count, { one: "Pick at least #.", other: "Pick at least #." }),
  pickAtMost: (count: number) => plural(count, { one: "Pick at most #.", other: "Pick at most #." }),
  atLeastCharacters: (count: number) =>
    plural(count, { one: "Use at least # character.", other: "Use at least # characters." }),
  atMostCharacters: (count: number) =>
    plural(count, { one: "Use at most # character.", other: "Use at most # characters." }),
  notObject: "Arguments must be a JSON object: { … }.",
  notJson: (problem: string) => `This is not valid JSON: ${problem}.`,
  unreadable: "unreadable",

  // -- the card
  asks: {
    form: "{server} has a question for you",
    url: "{server} asks you to open a page",
    sampling: "{server} wants to ask the model",
    sign_in: "Sign in to {server}",
  },
  notConnected: "{server} is not connected",
  whileRunning: "while it runs {tool}",
  neededFor: "needed for {tool}",
  nothingToFill: "There is nothing to fill in. The server asks for your consent.",
  submit: "Submit",
  decline: "Decline",
  declineTitle: "Tell the server that you do not want to answer",
  cancelTitle: "Close the question without an answer",
  pageOf:
    "This page belongs to {host}. Trellis has not loaded it. What you enter there goes to that page, not to this chat.",
  unknownHost: "an unknown host",
  openHost: (host: string) => `Open ${host}`,
  finished: "I have finished",
  model: "Model",
  limit: "Limit",
  tokens: (count: number) => plural(count, { one: "# token", other: "# tokens" }),
  instructions: "Instructions",
  asAssistant: "As the assistant",
  asYou: "As you",
  modelGets: "The model gets only this: not your chat, no results of other servers, and no tools.",
  allow: "Allow",
  refuse: "Refuse",

  // -- signing in
  host: "Host",
  unknown: "unknown",
  account: "Account",
  ownAccount: "yours, used only for your calls",
  sharedAccount: "the workspace's, shared by its members",
  scopes: "Asks for",
  waiting: "Waiting for you to finish signing in…",
  signInFailed: "The sign-in failed. Nothing was connected.",
  adminMustConnect: "An administrator must connect it. This continues on its own once they have.",
  signIn: "Sign in",
  openAgain: "Open it again",
  notNow: "Not now",
  doNotWait: "Don't wait",
  skipTitle: "Skip this call and tell the assistant",

  // -- afterwards
  outcomes: {
    accepted: "You answered",
    declined: "You declined",
    cancelled: "Closed without an answer",
    expired: "Nobody answered in time",
  },
  allowedModel: "You allowed it to ask the model",
  doneAt: (host: string) => `Done at ${host}`,
  signedIn: "You signed in",
  connected: "It was connected",
  notSignedIn: "You chose not to sign in",
  signInExpired: "Nobody signed in in time",
  signInOver: "No longer needed",
  neededSignIn: "needed a sign-in",
  asked: (message: string) => `asked: “${message}”`,
  answeredYes: "yes",
  answeredNo: "no",
  answeredNone: "none",
};

export default questions;
