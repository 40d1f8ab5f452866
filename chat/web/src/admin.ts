/** Entry of the admin's pages: the product's bar with its menus. The rest of them is the admin's own. */
import "./styles/admin.css";
import { forgetAtSignOut } from "./forgetting";
import { startLiveCounts } from "./live-counts";
import "./menus";

forgetAtSignOut();
startLiveCounts();
