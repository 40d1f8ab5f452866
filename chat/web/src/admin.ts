/** Entry of the admin's pages: the product's bar with its menus. The rest of them is the admin's own. */
import "./styles/admin.css";
import { startCardLabels } from "./card-labels";
import { startEscapingBack } from "./escaping-back";
import { forgetAtSignOut } from "./forgetting";
import { startLiveCounts } from "./live-counts";
import "./menus";
import { startReadingNotices } from "./reading-notices";
import { startTypedAddresses } from "./typed-addresses";

forgetAtSignOut();
startLiveCounts();
startReadingNotices();
startCardLabels();
startEscapingBack();
startTypedAddresses();
