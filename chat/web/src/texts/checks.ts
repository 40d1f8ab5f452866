/** Checks of buds, in their editor. */
import type { BudCheck, CheckResult } from "../wire";
import { plural } from "./language";

const STATUS: Record<CheckResult["status"], string> = {
  waiting: "Waiting",
  running: "Running",
  judging: "Being judged",
  passed: "Passed",
  failed: "Failed",
  cancelled: "Not run",
};

const CALLS: Record<string, string> = {
  succeeded: "succeeded",
  failed: "failed",
  refused: "was refused",
  cancelled: "was stopped",
};

const checks = {
  heading: "Checks",
  none: "A check is a test question with what you expect of the answer: tool calls, words, or a sentence that a model judges it by. Run your checks before you save a change, and you see whether the bud still does what it should. Tools that may change data are never really called.",
  help: "Checks try the bud as it stands here, without saving it. Tools that only read data are really called, with your rights. Tools that may change data are never called; their recorded results answer instead.",
  add: "Add a check",
  run: "Run checks",
  edit: "Edit",
  remove: "Remove",
  editOf: (question: string) => `Edit ${question}`,
  removeOf: (question: string) => `Remove ${question}`,
  sure: (question: string) => `Remove the check “${question.slice(0, 100)}”? Results of earlier runs stay.`,
  saved: "The check was saved.",
  removed: "The check was removed.",
  newCheck: "New check",
  editCheck: "Edit the check",
  saveCheck: "Save check",
  question: "Question",
  calls: "Tools it should call",
  callsHelp: "The check fails if one of them is not called. Other tools may be called, too.",
  tool: "Tool",
  someArguments: "With these arguments, as JSON",
  argumentsExample: '{"city": "Rome"}',
  addCall: "Add a tool call",
  removeCall: (tool: string) => `Remove the call of ${tool}`,
  unnamed: "the unnamed tool",
  contains: "The answer contains",
  excludes: "The answer does not contain",
  linesHelp: "One word or phrase a line. Upper and lower case are the same.",
  criterion: "Judged by a model",
  criterionExample: "The answer names the opening hours",
  criterionHelp: "The bud's own model decides whether this sentence is true of the answer.",
  recordings: "Recorded results",
  recordingsHelp: "What tools that may change data give in this check. Without one, the call is refused.",
  whenArguments: "Only for these arguments, as JSON",
  result: "Result",
  isError: "The result is an error",
  addRecording: "Add a recorded result",
  removeRecording: (tool: string) => `Remove the recorded result of ${tool}`,
  notJson: 'Write the arguments as a JSON object, such as {"city": "Rome"}.',
  notStarted: "The checks could not be started. Try again.",
  progress: "Checks that are done",
  running: (done: number, total: number) => `${done} of ${total} done`,
  passed: (passed: number, total: number) => `${passed} of ${total} passed`,
  cancelled: "Cancelled",
  ofDraft: "Unsaved draft",
  ofVersion: (version: number) => `Version ${version}`,
  status: STATUS,
  answerAndCalls: "Answer and calls",
  noAnswer: "There was no answer.",
  noCalls: "It called no tool.",
  notYours: "Only the person who ran the checks, and auditors, can read the answer and what tools gave.",
  recorded: "answered by its recorded result",
  callStatus: (status: string) => CALLS[status] ?? status,
  expects: (check: BudCheck) =>
    [
      ...(check.calls ?? []).map((one) => `calls ${one.tool}`),
      ...(check.contains ?? []).map((words) => `contains “${words}”`),
      ...(check.excludes ?? []).map((words) => `does not contain “${words}”`),
      ...(check.criterion ? [`judged by “${check.criterion}”`] : []),
      ...((check.recordings ?? []).length > 0
        ? [plural((check.recordings ?? []).length, { one: "# recorded result", other: "# recorded results" })]
        : []),
    ].join(" · "),
};

export default checks;
