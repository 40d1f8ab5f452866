/** Entry of a shared chat. */
import "./styles/app.css";
import { showTexts } from "./reading-page";

showTexts();
