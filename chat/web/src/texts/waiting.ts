/** What waits for the person in all their chats and of members, and how they are told. */
import { plural } from "./language";

const waiting = {
  title: "Waiting for you",
  open: (count: number) => `Waiting for you: ${plural(count, { one: "# item", other: "# items" })}`,
  nothing: "Nothing waits for you.",
  inChat: (chat: string) => `In “${chat}”`,
  goThere: "Show in chat",
  allowAll: (count: number) => `Allow all ${count}`,
  allowAllChanged: (count: number) => `Allow all ${count}, with your changes`,
  unfit: "Arguments that you are changing do not fit yet.",
  refuseAll: (count: number) => `Refuse all ${count}`,
  refuseAllMore: (count: number) => `Refuse all ${count}…`,
  step: (count: number) => `${count} calls of one step wait for you`,
  counted: (count: number, title: string) => `(${count}) ${title}`,

  // -- what members ask for
  asksFor: "{person} asks for {name}",
  kinds: { server: "Server", tool: "Tool", other: "Something else" },
  note: "Note to them",
  grant: "Grant",
  decline: "Decline",
  wasGranted: (person: string) => `Granted. ${person} was told.`,
  wasDeclined: (person: string) => `Declined. ${person} was told.`,
  setUp: {
    server: "Look for it in the catalogue",
    tool: "Look for it among the servers",
    other: "See all requests",
  },
  grantOnlyTells: "Granting tells them. Set it up first, or right after.",

  // -- notifications of the browser
  tellMe: "Notify me while Trellis is in the background",
  tellMeAbout: "When something waits for you, or an answer is finished.",
  byMail: "By mail, while Trellis is closed, and quiet hours",
  blocked: "Your browser blocks notifications of this site. Allow them in its settings.",
  approvalWaits: (tool: string) => `Waiting for your approval: ${tool}`,
  resolutionWaits: (tool: string) => `Did “${tool}” take effect? Trellis lost the connection.`,
  questionWaits: (server: string) => `${server} has a question for you`,
  signInWaits: (server: string) => `${server} needs you to sign in`,
  secondPersonWaits: (person: string, tool: string) => `${person} asks you to allow ${tool}`,
  requestWaits: (person: string, name: string) => `${person} asks for ${name}`,
  answered: "The answer is finished",
};

export default waiting;
