import { createPortal } from "preact/compat";
import common from "../texts/common";
import { Icon } from "../ui/icon";
import { topmost } from "../ui/modal";
import { dismissToast, toasts } from "./toasts";

/** Notes in passing, where they can be seen and their buttons pressed. */
export function Toasts() {
  const dialog = topmost();
  return dialog ? createPortal(<Stack />, dialog) : <Stack />;
}

function Stack() {
  return (
    <div class="toast-stack" role="status" aria-live="polite">
      {toasts.value.map((toast) => (
        <div key={toast.id} class="toast-box" data-tone={toast.tone}>
          <Icon name={toast.tone === "ok" ? "circleCheck" : toast.tone === "bad" ? "alert" : "info"} />
          <span class="grow break-words">{toast.text}</span>
          {toast.action && (
            <button
              type="button"
              class="btn btn-xs btn-outline-quiet"
              onClick={() => {
                dismissToast(toast.id);
                toast.action?.run();
              }}
            >
              {toast.action.label}
            </button>
          )}
          <button
            type="button"
            class="btn btn-xs btn-square btn-quiet"
            aria-label={common.dismiss}
            onClick={() => dismissToast(toast.id)}
          >
            <Icon name="close" />
          </button>
        </div>
      ))}
    </div>
  );
}
