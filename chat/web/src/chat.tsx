/** Entry of the chat application. */
import "./styles/app.css";
import "./browser/input-method";
import { effect } from "@preact/signals";
import { render } from "preact";
import { ConnectionBanner } from "./app/banner";
import { boot } from "./app/boot";
import { later } from "./app/later";
import { askBeforeLeaving, LeavingDialog } from "./app/leaving";
import { conversationPath, homePath, place } from "./app/place";
import { followServerIcons } from "./app/server-tile";
import { SkipLink } from "./app/skip-link";
import { Toasts } from "./app/toast-stack";
import { DropArea, refuseFiles } from "./artifacts/button";
import { FilesSide } from "./artifacts/side";
import { noteChat } from "./browser/last-chat";
import { chooseHomeBud, chooser } from "./chat/composer/choice";
import { ChooserDialog } from "./chat/composer/chooser";
import { comparing } from "./chat/composer/comparing";
import { followHomeFiles } from "./chat/composer/home-files";
import { takeFiles } from "./chat/composer/uploads";
import { ChatOnItsWay } from "./chat/loading";
import { followConnection } from "./chat/sending";
import { closeSearch, HelpDialog, installShortcuts } from "./chat/shortcuts";
import { Home } from "./home/home";
import { forgetAtSignOut } from "./pages/forgetting";
import { startWorker } from "./pages/installing";
import { followFolders } from "./sidebar/folders";
import { isSidebarHidden } from "./sidebar/hiding";
import { isHelpOpen, isSearchOpen } from "./sidebar/opening";
import { ConversationDialogs } from "./sidebar/row";
import { Sidebar } from "./sidebar/sidebar";
import { followDrafts, HOME, sendDrafts } from "./store/draft";
import { sharing } from "./store/sharing";
import { startApp } from "./store/start";
import files from "./texts/files";
import { isWaitingOpen } from "./waiting/state";
import { watchWaiting } from "./waiting/watch";

const ConversationView = later(
  () => import("./chat/conversation").then((module) => module.ConversationView),
  // A page that the browser kept has the code of a chat beside it (config/serving/installing.py).
  { Meanwhile: ChatOnItsWay, isKept: boot.is_kept },
);
const SearchDialog = later(() => import("./sidebar/search").then((module) => module.SearchDialog));
// Whoever moves or types is about to open one, or to search: what they type next is for a field that has to be there.
if (place.value) ConversationView.loadAhead();
for (const sign of ["pointermove", "pointerdown", "keydown"])
  for (const view of [ConversationView, SearchDialog]) addEventListener(sign, view.loadAhead, { once: true });

const WaitingDialog = later(() => import("./chat/waiting-dialog").then((module) => module.WaitingDialog));
const CompareDialog = later(() =>
  import("./chat/composer/compare-dialog").then((module) => module.CompareDialog),
);
const ShareDialog = later(() => import("./chat/share-dialog").then((module) => module.ShareDialog));

function App() {
  const id = place.value;
  return (
    <div class="app" data-sidebar={isSidebarHidden.value ? "hidden" : undefined}>
      <SkipLink />
      <Sidebar />
      <main id="main" class="app-main" tabIndex={-1}>
        <ConnectionBanner />
        <DropArea label={files.drop} onFiles={(list) => takeFiles(id ?? HOME, id ?? undefined, list)}>
          {id ? <ConversationView key={id} id={id} /> : <Home />}
        </DropArea>
      </main>
      <FilesSide />
      <Toasts />
      <ConversationDialogs />
      {isSearchOpen.value && <SearchDialog onClose={closeSearch} />}
      {chooser.value && (
        <ChooserDialog
          kind={chooser.value}
          onClose={() => {
            chooser.value = null;
          }}
        />
      )}
      {comparing.value && (
        <CompareDialog
          about={comparing.value}
          onClose={() => {
            comparing.value = null;
          }}
        />
      )}
      {sharing.value && (
        <ShareDialog
          about={sharing.value}
          onClose={() => {
            sharing.value = null;
          }}
        />
      )}
      {isWaitingOpen.value && (
        <WaitingDialog
          onClose={() => {
            isWaitingOpen.value = false;
          }}
        />
      )}
      {isHelpOpen.value && <HelpDialog />}
      <LeavingDialog />
    </div>
  );
}

/** Pages outside the chat lead here with `?waiting`, `?search` or `?bud=` and the bud to talk to. */
function openWanted(): void {
  const wanted = new URLSearchParams(location.search);
  const bud = wanted.get("bud");
  if (!wanted.has("waiting") && !wanted.has("search") && !bud) return;
  history.replaceState(history.state, "", location.pathname);
  isWaitingOpen.value = wanted.has("waiting");
  isSearchOpen.value = wanted.has("search") && !wanted.has("waiting");
  if (bud) chooseHomeBud(bud);
}

const root = document.getElementById("app");
if (root) {
  root.replaceChildren();
  installShortcuts();
  askBeforeLeaving();
  refuseFiles();
  forgetAtSignOut(sendDrafts);
  followDrafts();
  void followHomeFiles();
  render(<App />, root);
  startWorker();
  effect(() => noteChat(place.value ? conversationPath(place.value) : homePath));
  watchWaiting();
  followServerIcons();
  followFolders();
  openWanted();
  followConnection();
  startApp();
}
