/** Entry of a shared chat. */
import "./styles/app.css";
import { showTexts } from "./pages/reading-page";

showTexts();
