/** Entry of a shared chat: what its page holds as text, rendered as in the chat. Without a script the text stays. */
import "./styles/app.css";
import { finishBlock } from "./markdown/finish";
import { MarkdownStream } from "./markdown/stream";
import { tellTarget } from "./said";
import { localTimes } from "./times";

for (const source of document.querySelectorAll<HTMLElement>("[data-markdown]")) {
  const rendered = document.createElement("div");
  rendered.className = "md";
  new MarkdownStream(rendered, finishBlock).update(source.textContent ?? "", true);
  rendered.querySelectorAll("a").forEach(tellTarget);
  source.replaceWith(rendered);
}
localTimes();
