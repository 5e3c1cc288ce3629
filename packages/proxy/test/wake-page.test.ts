/** Who is shown the wake page, and who waits as before. */
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { tempFolder } from "../../platform/test/helpers/temp.ts";
import type { Lease, ProxyRefusal } from "../src/contract.ts";
import { refusalAnswer } from "../src/http/refusals.ts";
import { OWN_WAKE_PAGE, readWakePage, WAKE_PAGE_RELOAD_S } from "../src/http/wake-page.ts";
import { isVisit } from "../src/wake-page.ts";
import { request, useProxyWorld, w } from "./proxy-world.ts";

const BROWSER = {
  Accept: "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,*/*;q=0.8",
  "Sec-Fetch-Dest": "document",
  "Sec-Fetch-Mode": "navigate",
};
const fields = (given: Record<string, string>) =>
  Object.entries(given).map(([name, value]) => ({ name, key: name.toLowerCase(), value }));
const visit = { fields: fields(BROWSER) };

test.each<[string, boolean, string, Record<string, string>]>([
  ["a browser", true, "GET", BROWSER],
  ["a browser that does not say what for", true, "GET", { Accept: "text/html, */*;q=0.1" }],
  ["odd spelling", true, "GET", { Accept: "application/xml , TEXT/HTML ; q=0.5" }],
  ["curl", false, "GET", { Accept: "*/*" }],
  ["no Accept", false, "GET", {}],
  ["any text", false, "GET", { Accept: "text/*" }],
  ["JSON", false, "GET", { Accept: "application/json" }],
  ["anything but HTML", false, "GET", { Accept: "text/html;q=0, */*" }],
  ["anything but HTML, exactly", false, "GET", { Accept: "text/html; level=1; q=0.000, */*" }],
  ["another method", false, "POST", BROWSER],
  ["only the head", false, "HEAD", BROWSER],
  ["fetch()", false, "GET", { ...BROWSER, "Sec-Fetch-Dest": "empty", "Sec-Fetch-Mode": "cors" }],
  ["a frame", false, "GET", { ...BROWSER, "Sec-Fetch-Dest": "iframe" }],
  ["an older script", false, "GET", { Accept: "text/html", "X-Requested-With": "XMLHttpRequest" }],
  ["a part of a file", false, "GET", { ...BROWSER, Range: "bytes=10-" }],
  ["a body", false, "GET", { ...BROWSER, "Content-Length": "2" }],
])("%s is shown a page: %s", (_who, shown, method, given) => {
  expect(isVisit({ method, fields: fields(given) })).toBe(shown);
});

/** What a visit gets that does not wait. */
const refused = (more = {}) => w.acquire({ ...visit, ...more }).catch((error: unknown) => error);
const WAKING = { status: 503, code: "waking", page: true };

describe("a visit to an app with wake_page", () => {
  useProxyWorld();

  test("is shown the page while a stopped machine starts, and reaches the app after that", async () => {
    const id = await w.asleep(await w.machine({ wake_page: true }), "stop");
    const release = w.world.holdBoots();
    expect(await refused()).toMatchObject(WAKING);
    await w.settled();
    expect(w.state(id)).toBe("starting");
    expect(await refused()).toMatchObject(WAKING);
    expect(w.held()).toBeUndefined();
    release();
    await w.reach(id, "running");
    await w.settled();
    expect(((await refused()) as Lease).machineId).toBe(id);
  });

  test("is shown it even while programs wait, which are held as before", async () => {
    const id = await w.asleep(await w.machine({ wake_page: true }), "stop");
    const release = w.world.holdBoots();
    const program = w.acquire();
    await w.settled();
    expect(w.state(id)).toBe("starting");
    expect(await refused()).toMatchObject(WAKING);
    expect(w.held()).toBe(1);
    release();
    expect((await program).wake.kind).toBe("cold");
  });

  test("waits for a machine that resumes, also while it does", async () => {
    const id = await w.asleep(await w.machine({ wake_page: true }));
    const restore = Promise.withResolvers<void>();
    w.world.host.hold.restore = restore.promise;
    const first = w.acquire(visit);
    await w.settled();
    expect(w.state(id)).toBe("starting");
    const second = w.acquire(visit);
    expect(w.held()).toBe(2);
    restore.resolve();
    for (const lease of [await first, await second]) expect(lease.wake.kind).toMatch(/^(warm|resume)$/);
  });

  test("waits for a machine that runs and is at its limit, although another one cold starts", async () => {
    const busy = await w.machine({ wake_page: true, concurrency: { hard_limit: 1 } });
    await w.asleep(await w.machine({ wake_page: true, concurrency: { hard_limit: 1 } }), "stop");
    const release = w.world.holdBoots();
    const lease = await w.acquire();
    expect(lease.machineId).toBe(busy);
    const second = w.acquire(visit);
    expect(w.held()).toBe(1);
    lease.release({});
    expect((await second).machineId).toBe(busy);
    release();
  });

  test("is told at once what is wrong instead", async () => {
    await w.asleep(await w.machine({ wake_page: true, autostart: false }), "stop");
    expect(await refused()).toMatchObject({ code: "not_running", page: false });
  });
});

describe("without wake_page", () => {
  useProxyWorld();

  test("a visit waits for a cold start", async () => {
    await w.asleep(await w.machine(), "stop");
    expect((await w.acquire(visit)).wake.kind).toBe("cold");
  });
});

test("the page is not stored, takes nothing from elsewhere, and says when to ask again", () => {
  const { answer, body } = refusalAnswer(WAKING as ProxyRefusal, request().requestId);
  const headers = Object.fromEntries(answer.fields.map(({ key, value }) => [key, value]));
  expect(answer.status).toBe(503);
  expect(headers).toMatchObject({
    "content-type": "text/html; charset=utf-8",
    "cache-control": "no-store",
    "retry-after": String(WAKE_PAGE_RELOAD_S),
    "content-security-policy": expect.stringMatching(/^default-src 'none';.*style-src 'sha256-[^']+'$/),
  });
  expect(body.toString()).toContain(`<meta http-equiv="refresh" content="${WAKE_PAGE_RELOAD_S}">`);
  expect(body.toString()).not.toMatch(/https?:|<script|<link|<img/);
});

describe("a page of one's own", () => {
  const read = async (text: string) => {
    const path = join(await tempFolder(), "page.html");
    await writeFile(path, text);
    return readWakePage(path, "SETTING");
  };

  test("is sent as it is, with styles and images that are in it", async () => {
    const page = await read('<meta http-equiv="refresh" content="5"><p>Moment mal</p>');
    expect(page.body.toString()).toContain("Moment mal");
    expect(page.policy).toContain("style-src 'unsafe-inline'; img-src data:");
    expect(page.policy).not.toContain("script-src");
    expect(OWN_WAKE_PAGE.policy).not.toContain("unsafe");
  });

  test.each([
    ["that does not reload itself", "<p>Wait</p>", /does not reload itself. Add <meta http-equiv="refresh"/],
    ["that is too large", "x".repeat(300_000), /has 300000 bytes. Use up to 262144/],
  ])("%s is refused", async (_what, text, message) => {
    await expect(read(text)).rejects.toMatchObject({
      code: "invalid_argument",
      message: expect.stringMatching(message),
    });
  });

  test("that is missing is refused", async () => {
    await expect(readWakePage("/nowhere/page.html", "SETTING")).rejects.toThrow(/ENOENT.*Or unset SETTING/);
    await expect(readWakePage("/", "SETTING")).rejects.toThrow(/is not a file/);
  });
});
