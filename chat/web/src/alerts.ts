/** Entry of the pages of alert rules: the filter's field completes names and values. */
import "./site";
import { startSearchOfPage } from "./audit/search";

startSearchOfPage();
