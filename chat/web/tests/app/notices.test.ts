import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { loadNotices, notices, placeNotices, readNotice, unread } from "../../src/app/notices";
import { startReadingNotices } from "../../src/pages/reading-notices";
import { openPage } from "../page";

const NOTICE = {
  id: "1",
  title: "Alert",
  text: "",
  url: "/w/a/audit/alerts/",
  at: "2026-01-01T00:00:00Z",
  is_read: false,
};

afterEach(() => vi.unstubAllGlobals());

// Tests of other files may have asked for notices on the same page.
beforeEach(() => {
  placeNotices(null, "");
  notices.value = [];
  unread.value = 0;
});

test("what the server says is shown, and a failure leaves it", async () => {
  const fetched = vi.fn(async () => new Response(JSON.stringify({ unread: 1, notices: [NOTICE] })));
  vi.stubGlobal("fetch", fetched);
  await loadNotices();
  expect(fetched).not.toHaveBeenCalled();
  placeNotices("/w/a/notices/", "token");
  await loadNotices();
  expect(unread.value).toBe(1);
  expect(notices.value?.[0]?.title).toBe("Alert");
  vi.stubGlobal(
    "fetch",
    vi.fn(async () => new Response("", { status: 500 })),
  );
  await loadNotices();
  expect(unread.value).toBe(1);
});

test("marking read is a change with the page's token, before they are asked for again", async () => {
  const calls: [string, RequestInit | undefined][] = [];
  vi.stubGlobal("fetch", async (url: string, init?: RequestInit) => {
    calls.push([url, init]);
    return new Response(JSON.stringify({ unread: 0, notices: [] }));
  });
  placeNotices("/w/a/notices/", "token");
  await loadNotices({ marksRead: true });
  expect(calls.map(([url]) => url)).toEqual(["/w/a/notices/read/?format=json", "/w/a/notices/?format=json"]);
  expect(calls[0]?.[1]?.method).toBe("POST");
  expect((calls[0]?.[1]?.headers as Record<string, string>)["X-CSRFToken"]).toBe("token");
});

test("REL-916: opening one marks it as read, also while the page goes away", async () => {
  const calls: [string, RequestInit | undefined][] = [];
  vi.stubGlobal("fetch", async (url: string, init?: RequestInit) => {
    calls.push([url, init]);
    return new Response("{}");
  });
  placeNotices("/w/a/notices/", "token");
  notices.value = [NOTICE, { ...NOTICE, id: "2" }];
  unread.value = 2;
  readNotice("2");
  readNotice("2");
  expect(notices.value.map((one) => one.is_read)).toEqual([false, true]);
  expect(unread.value).toBe(1);
  expect(calls).toHaveLength(1);
  expect(calls[0]?.[0]).toBe("/w/a/notices/read/?format=json");
  expect(String(calls[0]?.[1]?.body)).toBe("notice=2");
  expect(calls[0]?.[1]?.keepalive).toBe(true);
});

test("REL-916: so it is on pages that the server draws", () => {
  const calls: [string, RequestInit | undefined][] = [];
  vi.stubGlobal("fetch", async (url: string, init?: RequestInit) => {
    calls.push([url, init]);
    return new Response("{}");
  });
  document.body.innerHTML =
    '<input name="csrfmiddlewaretoken" value="t"><a href="#" data-unread data-notice="7" data-read="/w/a/notices/read/"><b>Alert</b></a>';
  startReadingNotices();
  document.querySelector("b")?.click();
  document.querySelector("b")?.click();
  expect(calls.map(([url, init]) => [url, String(init?.body)])).toEqual([
    ["/w/a/notices/read/?format=json", "notice=7"],
  ]);
  expect(document.querySelector("a")?.hasAttribute("data-unread")).toBe(false);
});

test("REL-1728: a page whose person got another role says so, and can be opened anew", async () => {
  openPage();
  vi.resetModules();
  const { hearing } = await import("../../src/store/start");
  const { toasts } = await import("../../src/app/toasts");
  hearing("bud.changed", "1");
  expect(toasts.value).toEqual([]);
  hearing("membership.changed", "1");
  expect(toasts.value.map(({ text, action }) => [text, action?.label])).toEqual([
    ["Your role in this workspace has changed.", "Reload"],
  ]);
});
