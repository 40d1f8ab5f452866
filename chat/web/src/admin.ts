/** Entry of the admin's pages: the product's bar with its menus. The rest of them is the admin's own. */
import "./styles/admin.css";
import { startCardLabels } from "./pages/card-labels";
import { startEscapingBack } from "./pages/escaping-back";
import { forgetAtSignOut } from "./pages/forgetting";
import { startLiveCounts } from "./pages/live-counts";
import "./browser/input-method";
import "./pages/menus";
import { startReadingNotices } from "./pages/reading-notices";
import { startTypedAddresses } from "./pages/typed-addresses";

forgetAtSignOut();
startLiveCounts();
startReadingNotices();
startCardLabels();
startEscapingBack();
startTypedAddresses();
