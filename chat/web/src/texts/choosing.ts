/** Choosing who answers: bud, model, tools; and what is typed after a sign. */
const choosing = {
  title: "Bud and model",
  change: (bud: string, model: string) => `Bud and model: ${bud}, ${model}. Change`,
  changeGone: (bud: string) => `Bud and model: ${bud}. Change`,
  gone: (bud: string) => `“${bud}” is no longer offered to you. Choose another bud for this chat.`,
  archived: (bud: string) => `“${bud}” is archived. It still answers in this chat, but not in new ones.`,
  chooseAnother: "Choose another",
  placeholder: "Search buds and models",
  buds: "Buds",
  models: "Models",
  pinned: "Pinned",
  pin: (name: string) => `Pin ${name}`,
  unpin: (name: string) => `Unpin ${name}`,
  ownModel: "the bud's own",
  noMatches: (words: string) => `No bud or model matches “${words}”.`,
  fixedModel: (bud: string) => `${bud} answers with its own model only.`,
  seesPictures: "sees pictures",
  getsNoTools: "no tools",
  reasons: "reasons",
  context: (size: string) => `${size} context`,
  price: (prompt: string, answer: string) => `${prompt} in, ${answer} out per million tokens`,
  listedOn: (day: string) => `list price of ${day}`,
  endsOn: (day: string) => `ends on ${day}`,
  goneSince: (day: string) => `not in its provider’s list since ${day}`,
  unusable: (model: string) =>
    `“${model}” no longer answers in this workspace. Choose another model or bud, or ask an admin.`,
  noBud: "No bud is there to answer. Choose one, then try again.",
  waitForAnswer: "You can change this when the answer is complete.",

  // -- a bud for one message
  anotherBud: "Another bud",
  askOnce: "Ask another bud this once",
  asks: (bud: string) => `Asks ${bud} this once`,
  dontAsk: (bud: string) => `Don’t ask ${bud}`,
  forBud: (bud: string) => `for ${bud}`,

  // -- what a message takes along
  takeAlong: "Files and resources",
  takenOut: (title: string, server: string) =>
    `“${title}” no longer goes with your message: the bud that answers does not use ${server}.`,
  fileOfChat: "file of this chat",

  // -- commands
  commands: "Commands and prompts",
  noCommand: "No command or prompt matches.",
  moreMatches: "There are more. Type on to find them.",
  commandTitles: {
    bud: "Choose the bud",
    model: "Choose the model",
    compare: "Compare the answers of two or three models",
    file: "Add files",
    search: "Search your chats",
    tools: "Choose servers and tools",
    new: "Start a new chat",
    temporary: "Start a temporary chat",
  },

  // -- a server that is missing
  isMissing: "{server} is not used in this chat.",
  addIt: "Add it",
  notNow: "Not now",
};

export default choosing;
