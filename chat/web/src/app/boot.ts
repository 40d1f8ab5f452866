/** What the page was drawn with, and the way to the server. */
import { createApi } from "../net/api";
import type { Boot } from "../wire";

export const boot: Boot = JSON.parse(document.getElementById("boot")?.textContent ?? "null") as Boot;
export const api = createApi(boot.urls.api, boot.csrf_token, boot.workspace.slug);
