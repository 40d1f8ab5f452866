/** What waits for the person in all their chats, and how they are told. */
import { plural } from "./language";

const waiting = {
  title: "Waiting for you",
  open: (count: number) => `Waiting for you: ${plural(count, { one: "# item", other: "# items" })}`,
  nothing: "Nothing waits for you.",
  inChat: (chat: string) => `In “${chat}”`,
  goThere: "Show in chat",
  allowAll: (count: number) => `Allow all ${count}`,
  refuseAll: (count: number) => `Refuse all ${count}`,
  step: (count: number) => `${count} calls of one step wait for you`,
  counted: (count: number, title: string) => `(${count}) ${title}`,

  // -- notifications of the browser
  tellMe: "Notify me while Trellis is in the background",
  tellMeAbout: "When something waits for you, or an answer is finished.",
  byMail: "By mail, and quiet hours",
  blocked: "Your browser blocks notifications of this site. Allow them in its settings.",
  approvalWaits: (tool: string) => `Waiting for your approval: ${tool}`,
  questionWaits: (server: string) => `${server} has a question for you`,
  signInWaits: (server: string) => `${server} needs you to sign in`,
  answered: "The answer is finished",
};

export default waiting;
