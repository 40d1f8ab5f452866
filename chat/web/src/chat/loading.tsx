/** What stands in the place of a chat until it is here. */
import t from "../texts/chat";
import { Header } from "./header";

/** In the place of its messages. */
export function Loading() {
  return (
    <div class="grid gap-6 pt-6" aria-busy="true">
      <span class="sr-only">{t.loading}</span>
      <div class="skeleton-line w-2/5 justify-self-end h-9" />
      {["w-11/12", "w-4/5", "w-3/5"].map((width) => (
        <div key={width} class={`skeleton-line ${width}`} />
      ))}
    </div>
  );
}

/** In the place of all of it: on a phone, the header's button is the only way to the list of chats. */
export function ChatOnItsWay() {
  return (
    <>
      <Header>
        <div class="chat-about" />
      </Header>
      <div class="chat-scroll">
        <div class="chat-column">
          <Loading />
        </div>
      </div>
    </>
  );
}
