import t from "../texts/shell";

function toMessage(event: MouseEvent): void {
  const field = document.getElementById("composer-text");
  if (!field) return;
  event.preventDefault();
  field.focus();
}

/** Past the list of chats: to the message field, or where there is none, or not yet, to what stands in its place. */
export function SkipLink() {
  return (
    <a class="skip-link" href="#main" onClick={toMessage}>
      {t.skip}
    </a>
  );
}
