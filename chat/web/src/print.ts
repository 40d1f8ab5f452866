/** Entry of a chat for paper. */
import "./styles/app.css";
import { showTexts } from "./pages/reading-page";

showTexts();
document.querySelector("[data-print]")?.addEventListener("click", () => print());
