/** Opening a notice marks it as read, wherever it leads. */
import { closestTo } from "../ui/closest";

/** Sent also while the page goes away. A failure leaves the notice unread, and the next click sends it again. */
export async function sendRead(url: string, csrfToken: string, notice: string): Promise<void> {
  try {
    await fetch(`${url}?format=json`, {
      method: "POST",
      headers: { "X-CSRFToken": csrfToken },
      body: new URLSearchParams({ notice }),
      credentials: "same-origin",
      keepalive: true,
    });
  } catch {
    // The page may be gone by now.
  }
}

function opened(event: MouseEvent): void {
  const link = closestTo(event, "a[data-notice][data-unread]");
  const { notice, read } = link?.dataset ?? {};
  if (!link || !notice || !read || event.button === 2) return;
  delete link.dataset.unread;
  link.querySelector(".sr-only")?.remove();
  const token = document.querySelector<HTMLInputElement>("[name=csrfmiddlewaretoken]")?.value ?? "";
  void sendRead(read, token, notice);
}

/** On pages that the server draws; the chat's bell sends it by itself. */
export function startReadingNotices(): void {
  document.addEventListener("click", opened);
  document.addEventListener("auxclick", opened); // into a new tab
}
