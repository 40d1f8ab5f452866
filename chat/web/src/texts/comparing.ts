/** Comparing models: choosing them, and their answers side by side. */
import { both, plural } from "./language";

const comparing = {
  // -- choosing
  compare: "Compare models…",
  title: "Compare models",
  about:
    "Send your next message to two or three models and see their answers side by side. You go on from the one you choose. Each answer uses tokens of its own.",
  search: "Search models",
  noMatches: (words: string) => `No model matches “${words}”.`,
  addModel: "Add a model",
  oneModel:
    "This workspace has one model, so there is nothing to compare. An administrator can add models under Model providers.",
  fixed: (bud: string) => `${bud} answers with its own model only, so you can't compare models with it.`,
  chosen: (count: number) => plural(count, { one: "# model chosen", other: "# models chosen" }),
  chooseTwo: "Choose two or three.",
  full: "Three models are the most.",
  doCompare: (count: number) => plural(count, { one: "Compare # model", other: "Compare # models" }),
  loading: "Loading models",

  // -- the chip of the next message, and of one that waits
  compares: (names: readonly string[]) => `Compares ${both(names)} · this message only`,
  change: "Change the models to compare",
  drop: "Don't compare models",
  sent: (names: readonly string[]) => `compares ${both(names)}`,

  // -- beside an answer
  compareWith: "Compare with…",
  withTitle: "Compare this answer with",
  withAbout:
    "Another model answers the same question. You see both answers side by side, and go on from the one you choose.",

  // -- the answers
  answers: "Answers to compare",
  answerOf: (name: string) => `Answer of ${name}`,
  states: {
    queued: "Starting",
    running: "Writing",
    waiting_for_approval: "Waiting for you",
    waiting_for_input: "Waiting for you",
    completed: "Done",
    failed: "Failed",
    cancelled: "Stopped",
    interrupted: "Interrupted",
  },
  tookTitle: "From the question to the end of the answer",
  use: "Use this answer",
  useOf: (name: string) => `Use the answer of ${name}`,
  useTitle: "Go on from this answer. The others stay, under the arrows beside it.",
  useStops: "Go on from this answer. Answers that are still being written are stopped.",
  stopOf: (name: string) => `Stop ${name}`,
  used: (name: string) => `You go on from the answer of ${name}. The others are under its arrows.`,
  progress: (done: number, all: number) => `${done} of ${all} answers have ended.`,
  keeps: (name: string) =>
    `Choose the answer to go on from. If you just write on, the answer of ${name} is used: it was complete first.`,
  keepsNone: "No answer is complete. Try one again, or write on.",
  isBusy: "If you write now, your message waits until all answers have ended.",
  hint: (name: string) => `Writing on uses ${name}'s answer.`,
};

export default comparing;
