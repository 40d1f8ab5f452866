/** The start page of a workspace. */
const home = {
  greetings: { morning: "Good morning", afternoon: "Good afternoon", evening: "Good evening" },
  greeting: (words: string, name: string) => `${words}, ${name}`,
  talkTo: "You are talking to {bud}.",
  ask: "How can we help?",
  budsOf: (workspace: string) => `Assistants (buds) of ${workspace}`,
  loadingBuds: "Loading the buds",
  noBuds: "No buds yet",
  writeOnce: "You can write here as soon as there is a bud",
  noBudsText: "A bud is an assistant with its own instructions and tools.",
  othersMakeBuds: "A workspace administrator can make one.",
  makeBud: "Make a bud",
  editBud: (name: string) => `Edit ${name}`,
  noTools: "No tools",
  allTools: "All tools of this workspace",
  serverStatus: {
    connected: ": connected",
    connecting: ": connecting",
    disconnected: ": disconnected",
    auth_required: ": needs a sign-in or a key",
    error: ": error",
  } as Record<string, string>,
  pageTitle: (workspace: string) => `${workspace} · Trellis`,

  demoModel: "demo model, not an AI",
  demoShort: "not an AI",
  demoTitle: "A built-in stand-in that follows a script, so that you can try Trellis offline",
  demoHint: "Answers come from the demo model.",
  demoText:
    "This is the {model}. It follows a script so that you can try tools and approvals without a key. Connect a real model to get real answers.",
  demoTextMember:
    "This is the {model}. It follows a script so that you can try tools and approvals. For real answers, ask an administrator for a real model.",
  connectModel: "Connect a model",
  demoTextUnused:
    "This is the {model}. Your workspace has a model, which this bud does not use yet. Choose it for this chat, or for all buds.",
  useModel: "Let buds use it",
};

export default home;
