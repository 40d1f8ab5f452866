import t from "../texts/shell";
import { Icon } from "../ui/icon";
import { boot } from "./boot";
import { socket, socketStatus } from "./connection";

/** How the connection is, when it is not simply there. */
export function ConnectionBanner() {
  switch (socketStatus.value) {
    case boot.is_kept && "connecting":
    case "reconnecting":
      return (
        <div class="banner" role="status">
          <Icon name="wifiOff" />
          <span>{boot.is_kept ? t.away : t.reconnecting}</span>
          <button type="button" class="link-quiet" onClick={() => socket.hurry()}>
            {t.tryNow}
          </button>
        </div>
      );
    case "signed_out":
      return (
        <div class="banner" role="alert">
          <Icon name="logOut" />
          <span>{t.sessionEnded}</span>
          <a class="link-quiet" href={`/accounts/login/?next=${encodeURIComponent(location.pathname)}`}>
            {t.signInAgain}
          </a>
        </div>
      );
    case "two_steps_needed":
      return (
        <div class="banner" role="alert">
          <Icon name="alert" />
          <span>{t.twoStepsNeeded}</span>
          <a class="link-quiet" href="/accounts/2fa/">
            {t.turnOnTwoSteps}
          </a>
          <button type="button" class="link-quiet" onClick={() => socket.hurry()}>
            {t.tryNow}
          </button>
        </div>
      );
    case "account_off":
    case "access_suspended":
    case "workspace_suspended":
    case "forbidden":
      return (
        <div class="banner" role="alert">
          <Icon name="alert" />
          <span>{t.shutOut[socketStatus.value]}</span>
          {/* The server's page says why, where it may; and whoever may enter again does. */}
          <button type="button" class="link-quiet" onClick={() => location.reload()}>
            {t.reload}
          </button>
          <a class="link-quiet" href="/">
            {t.toWorkspaces}
          </a>
        </div>
      );
    case "crowded":
      return (
        <div class="banner" role="alert">
          <Icon name="alert" />
          <span>{t.tooManyPages}</span>
          <button type="button" class="link-quiet" onClick={() => socket.hurry()}>
            {t.tryNow}
          </button>
        </div>
      );
    case "refused":
      return (
        <div class="banner" role="alert">
          <Icon name="alert" />
          <span>{t.closedByServer}</span>
          <button type="button" class="link-quiet" onClick={() => location.reload()}>
            {t.reload}
          </button>
        </div>
      );
    default:
      return null;
  }
}
