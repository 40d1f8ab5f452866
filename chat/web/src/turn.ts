/** Entry of the page of one turn: question and answer rendered as in the chat, as text by a switch, long ones folded. */
import "./audit";
import { startWrittenText } from "./pages/written-text";

for (const box of document.querySelectorAll<HTMLElement>("[data-said]")) startWrittenText(box);
