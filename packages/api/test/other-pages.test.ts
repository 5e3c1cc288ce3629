/** What a page of another server can have a browser send: the cookie comes along, and so does what the browser says of the page. */
import { once } from "node:events";
import { request as send } from "node:http";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { WebSocket } from "ws";
import { startApi, type TestApi } from "./helpers.ts";
import { MORE, pathOf, startShop } from "./more-than-reads.ts";

let server: TestApi;
let shop: Awaited<ReturnType<typeof startShop>>;
let cookie: string;

beforeAll(async () => {
  server = await startApi();
  shop = await startShop(server);
  const reply = await fetch(`${server.url}/v1/session`, {
    method: "POST",
    headers: { "content-type": "application/json", origin: server.url },
    body: JSON.stringify({ token: server.token }),
  });
  [cookie = ""] = (reply.headers.get("set-cookie") ?? "").split(";");
});
afterAll(() => server.close());

/** What browsers say of pages that are not the dashboard: as an image does, a form, a script, and one that says nothing. */
const OTHERS: Record<string, Record<string, string>> = {
  "an image on another port of the host": { "sec-fetch-site": "same-site" },
  "an image on another site": { "sec-fetch-site": "cross-site" },
  "a script on another port of the host": { origin: "http://127.0.0.1:8080", "sec-fetch-site": "same-site" },
  "a page without an origin": { origin: "null" },
  "a page in a browser that says nothing": {},
};

/** Not `fetch`, which has its own mind about some of the headers. */
async function ask(method: string, path: string, headers: Record<string, string>, body?: string): Promise<number> {
  const request = send(server.url + path, { method, headers });
  request.end(body);
  const [reply] = (await once(request, "response")) as [{ statusCode: number; resume(): void }];
  reply.resume();
  return reply.statusCode;
}

describe.each(Object.entries(OTHERS))("%s", (_title, marks) => {
  test("changes nothing with the cookie that comes along, whatever it asks for", async () => {
    const before = shop.traces();
    for (const route of MORE) {
      const [method = "", pattern = ""] = route.split(" ");
      const body = method === "GET" || method === "DELETE" ? undefined : "{}";
      const headers = { cookie, ...marks, ...(body !== undefined && { "content-type": "application/json" }) };
      expect(await ask(method, pathOf(pattern), headers, body), route).toBe(403);
    }
    expect(shop.traces()).toEqual(before);
  });
});

test("pages of the server itself read everything, also in browsers that say nothing of a page but what it adds", async () => {
  for (const marks of [{ "sec-fetch-site": "same-origin" }, { origin: server.url }, { "hibernaut-page": "1" }])
    for (const path of ["/v1/tokens", "/v1/audit", "/v1/webhooks", "/v1/apps"])
      expect(await ask("GET", path, { cookie, ...marks }), `${path} ${JSON.stringify(marks)}`).toBe(200);
});

describe("a WebSocket", () => {
  const M = "/v1/apps/shop/machines/v1";
  const upgrade = { connection: "upgrade", upgrade: "websocket", "sec-websocket-version": "13" };

  test.each([
    ["a plain request", {}],
    ["a request for another protocol", { connection: "upgrade", upgrade: "h2c" }],
    ["a request without a key", upgrade],
    ["a request of an unknown version", { ...upgrade, "sec-websocket-version": "99", "sec-websocket-key": "x" }],
  ])("is not opened by %s, which begins nothing", async (_title, headers) => {
    const before = shop.traces();
    for (const who of [{ cookie, origin: server.url }, { authorization: `Bearer ${server.token}` }])
      for (const path of ["exec?command=id", "forward?port=80"])
        expect(await ask("GET", `${M}/${path}`, { ...who, ...headers }), path).toBe(426);
    expect(shop.traces()).toEqual(before);
  });

  test("says before it opens why it does not, and after that why nothing ran", async () => {
    const headers = { authorization: `Bearer ${server.token}` };
    const url = server.url.replace("http", "ws") + M;
    const refused = new WebSocket(`${url}x/exec?command=id`, { headers });
    const [, reply] = (await once(refused, "unexpected-response")) as [unknown, { statusCode: number }];
    expect(reply.statusCode).toBe(404);
    // The machine ends between the check and the upgrade.
    shop.run.mockImplementationOnce(() => {
      throw new Error("Machine v1 is stopping.");
    });
    const late = new WebSocket(`${url}/exec?command=id`, { headers });
    const [message] = (await once(late, "message")) as [Buffer];
    expect(message[0]).toBe(3);
    expect(JSON.parse(message.subarray(1).toString())).toMatchObject({
      exit_code: null,
      error: "Machine v1 is stopping.",
    });
    await once(late, "close");
  });
});
