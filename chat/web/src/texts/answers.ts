/** What can be done with an answer, and speaking in place of writing. */
const answers = {
  copyAs: "Copy or share…",
  asMarkdown: "Markdown",
  asRichText: "Rich text",
  asPlainText: "Plain text",

  answerOtherwise: "Answer in another way",
  wishes: { shorter: "Shorter", longer: "Longer", simpler: "Simpler" },
  withModel: "With another model",
  withModelAbout: "The model you choose answers again. The answer so far is kept.",
  moreModels: "More models",
  goOn: "Continue the answer",

  rate: { good: "Good answer", bad: "Bad answer" },
  takeBack: "Take the rating back",
  whyGood: "What was good?",
  whyBad: "What was wrong?",
  whoSees: "Administrators see your rating and reason, but not this chat.",
  noReason: "No reason",
  sendReason: "Send reason",
  thanks: "Thank you. Your rating is kept.",

  readAloud: "Read aloud",
  stopReading: "Stop reading",
  dictate: "Dictate",
  stopDictating: "Stop dictating",
  dictateAbout: "Dictate. Your browser may send your voice to its maker.",
  dictateFailed: {
    "not-allowed": "Your browser does not let Trellis use the microphone.",
    "audio-capture": "No microphone was found.",
    network: "Your browser's speech service can't be reached.",
  } as Record<string, string>,
  readFailed: "Your browser can't read this aloud. It may have no voice for it.",
  dictateBroken: "Dictating has stopped. Try again.",
};

export default answers;
