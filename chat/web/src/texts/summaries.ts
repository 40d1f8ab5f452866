/** The summary that a model reads in place of older messages. */
import { plural } from "./language";

const summaries = {
  title: "Older messages were summarised",
  about: (questions: number) =>
    `The assistant reads this in place of ${plural(questions, {
      one: "# question and its answer",
      other: "# questions and their answers",
    })}. The messages above stay as they are.`,
  notUsed: "Not used. Older messages are left out where the assistant has no room for them.",
  edited: "You edited it.",
  edit: "Edit summary",
  stopUsing: "Don't use it",
  useAgain: "Use it again",
};

export default summaries;
