/** Reading aloud and dictating with what the browser itself has; where it has nothing, nothing is offered. */
import { signal } from "@preact/signals";

/** Browsers stop in the middle of long ones. */
const MOST_AT_ONCE = 220;

/** What is being read aloud, by the id of its turn. */
export const readingAloud = signal<string | null>(null);

export const canRead = (): boolean => "speechSynthesis" in window && "SpeechSynthesisUtterance" in window;

/** To a mark with something blank behind it, so that "3.50" and "example.org" are words; others write without blanks. */
const SENTENCE = /[^\n]+?(?:[.!?…]+["”’»)\]]*(?=\s|$)|[。！？]+|(?=\n)|$)\s*/g;

/** A text in pieces of whole sentences, or of words where a sentence is long. Pure. */
export function pieces(text: string): string[] {
  const found: string[] = [];
  for (const sentence of text.match(SENTENCE) ?? []) {
    for (const part of sentence.match(new RegExp(`.{1,${MOST_AT_ONCE}}(?:\\s|$)|\\S+`, "g")) ?? []) {
      if (part.trim() !== "") found.push(part.trim());
    }
  }
  return found;
}

export function stopReading(): void {
  removeEventListener("pagehide", stopReading);
  readingAloud.value = null;
  speechSynthesis.cancel();
}

/** Read a text aloud; `onFault` hears that the browser cannot, as where it has no voice. */
export function readAloud(id: string, text: string, onFault: () => void): void {
  stopReading();
  const parts = pieces(text);
  readingAloud.value = id;
  // Some browsers would read on in the page that follows, which has no button to stop it.
  addEventListener("pagehide", stopReading, { once: true });
  parts.forEach((part, at) => {
    const utterance = new SpeechSynthesisUtterance(part);
    if (at === parts.length - 1) {
      utterance.onend = () => {
        if (readingAloud.value === id) readingAloud.value = null;
      };
    }
    utterance.onerror = ({ error }) => {
      if (readingAloud.value !== id) return;
      readingAloud.value = null;
      if (error !== "canceled" && error !== "interrupted") onFault();
    };
    speechSynthesis.speak(utterance);
  });
}

interface Recognition {
  continuous: boolean;
  lang: string;
  onresult: ((event: { resultIndex: number; results: ArrayLike<Heard> }) => void) | null;
  onend: (() => void) | null;
  onerror: ((event: { error: string }) => void) | null;
  start: () => void;
  stop: () => void;
}
type Heard = ArrayLike<{ transcript: string }> & { isFinal: boolean };
type Recognizer = new () => Recognition;

function recognizer(): Recognizer | undefined {
  const page = window as unknown as Record<string, Recognizer | undefined>;
  return page.SpeechRecognition ?? page.webkitSpeechRecognition;
}

export const canDictate = (): boolean => recognizer() !== undefined;

/** Begin to listen; gives what ends it. `heard` gets each sentence, `ended` the reason where it was a failure. */
export function dictate(heard: (words: string) => void, ended: (problem: string | null) => void): () => void {
  const Made = recognizer();
  if (!Made) return () => undefined;
  const listening = new Made();
  let problem: string | null = null;
  listening.continuous = true;
  listening.lang = navigator.language;
  listening.onresult = (event) => {
    for (let at = event.resultIndex; at < event.results.length; at += 1) {
      const result = event.results[at];
      const words = result?.isFinal ? result[0]?.transcript.trim() : "";
      if (words) heard(words);
    }
  };
  listening.onerror = (event) => {
    problem = event.error;
  };
  listening.onend = () => ended(problem);
  listening.start();
  return () => listening.stop();
}
