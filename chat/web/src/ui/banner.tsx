import { socket, socketStatus } from "../app";
import { Icon } from "./icon";

/** How the connection is, when it is not simply there. */
export function ConnectionBanner() {
  switch (socketStatus.value) {
    case "reconnecting":
      return (
        <div class="banner" role="status">
          <Icon name="wifiOff" />
          <span>Reconnecting…</span>
          <button type="button" class="link-quiet" onClick={() => socket.hurry()}>
            Try now
          </button>
        </div>
      );
    case "signed_out":
      return (
        <div class="banner" role="alert">
          <Icon name="logOut" />
          <span>Your session has ended.</span>
          <a class="link-quiet" href={`/accounts/login/?next=${encodeURIComponent(location.pathname)}`}>
            Sign in again
          </a>
        </div>
      );
    case "forbidden":
      return (
        <div class="banner" role="alert">
          <Icon name="alert" />
          <span>You are no longer a member of this workspace.</span>
          <a class="link-quiet" href="/">
            Go to your workspaces
          </a>
        </div>
      );
    case "refused":
      return (
        <div class="banner" role="alert">
          <Icon name="alert" />
          <span>The server closed the connection because of something this page sent.</span>
          <button type="button" class="link-quiet" onClick={() => location.reload()}>
            Reload
          </button>
        </div>
      );
    default:
      return null;
  }
}
