/** Entry of the admin's pages: the product's bar with its menus. The rest of them is the admin's own. */
import "./styles/admin.css";
import { startCardLabels } from "./pages/card-labels";
import { startEscapingBack } from "./pages/escaping-back";
import { forgetAtSignOut } from "./pages/forgetting";
import { startLiveCounts } from "./pages/live-counts";
import "./browser/input-method";
import { startLightPaper } from "./pages/light-paper";
import "./pages/menus";
import { startPlaceInSight } from "./pages/place-in-sight";
import { startReadingNotices } from "./pages/reading-notices";
import { localTimes } from "./pages/times";
import { startTypedAddresses } from "./pages/typed-addresses";

forgetAtSignOut();
const { formats } = document.getElementById("page")?.dataset ?? {};
if (formats) document.documentElement.dataset.formats = formats; // the page's own tag is the package's
localTimes();
startLiveCounts();
startReadingNotices();
startCardLabels();
startEscapingBack();
startTypedAddresses();
startLightPaper();
startPlaceInSight();
