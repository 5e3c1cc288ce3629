/** Names under which the dashboard is opened, and names of apps: nothing is both. */
import { once } from "node:events";
import { type IncomingMessage, request as send } from "node:http";
import { beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { startPlatform } from "../../platform/test/helpers/fake-world.ts";
import { createToken } from "../src/tokens.ts";
import { as, type TestApi, testApi } from "./helpers.ts";
import type { Call } from "./openapi-check.ts";

let server: TestApi;
let call: Call;
/** What DNS has, by name; null for no answer. */
let txt: Record<string, string[] | null>;

beforeEach(async () => {
  txt = {};
  const txtRecords = async (name: string) => {
    if (txt[name] === null) throw new Error("queryTxt ETIMEOUT");
    return txt[name] ?? [];
  };
  ({ server, call } = await testApi({ txtRecords }, { apps: ["shop", "bank"] }));
});

const limited = () => createToken(server.tokens, "ci", { scopes: ["deploy"], apps: ["shop"] }).token;
const add = (hostname: string, token = server.token) =>
  call("POST", "/v1/apps/shop/hostnames", { hostname }, as(token));

/** Opens the dashboard under a name, and signs in. */
async function signIn(host: string, token = server.token): Promise<{ status: number; cookie: string | undefined }> {
  const headers = { host, origin: `https://${host}`, "content-type": "application/json" };
  const request = send(`${server.url}/v1/session`, { method: "POST", headers });
  request.end(JSON.stringify({ token }));
  const [reply] = (await once(request, "response")) as [IncomingMessage];
  reply.resume();
  return { status: reply.statusCode ?? 0, cookie: reply.headers["set-cookie"]?.[0] };
}

describe("a name under which someone signed in", () => {
  test("goes to no app from then on, also after a restart, and to none that has it from before", async () => {
    const told: string[][] = [];
    server.platform.hostnames.subscribe(() => told.push(server.platform.hostnames.reserved()));
    expect((await signIn("hibernaut.example.com")).status).toBe(201);
    expect(told.at(-1)).toContain("hibernaut.example.com");
    expect(await add("hibernaut.example.com")).toMatchObject({
      status: 400,
      body: { error: "invalid_argument", message: expect.stringContaining("reserved") },
    });
    // Of a release that accepted such names.
    for (const name of ["hibernaut.example.com", "127.0.0.1", "www.example.com"])
      server.world.store.hostnames.insert(name, "shop");
    expect(server.platform.hostnames.owners()).toEqual({ "www.example.com": "shop" });
    const next = await startPlatform(server.world);
    onTestFinished(() => next.close());
    expect(next.hostnames.reserved()).toContain("hibernaut.example.com");
    expect(next.hostnames.list("shop")).toContain("hibernaut.example.com");
  });

  test("is only reserved by who may give names to all apps, and a hundred are", async () => {
    for (const [scopes, apps] of [
      [["admin"], ["shop"]],
      [["read"], null],
    ] as const) {
      const { token } = createToken(server.tokens, "visitor", { scopes: [...scopes], apps: apps && [...apps] });
      expect((await signIn("www.example.com", token)).status).toBe(201);
    }
    expect((await add("www.example.com")).status).toBe(201);
    const { hostnames } = server.platform;
    for (let count = 0; count < 120; count += 1) hostnames.signIn(`host${count}.example.com`, true);
    expect(hostnames.reserved().filter((name) => name.startsWith("host"))).toHaveLength(100);
    expect(hostnames.isReserved("host119.example.com")).toBe(true);
  });

  test("is not one of an app: nobody gets a cookie there", async () => {
    await add("www.example.com");
    for (const host of ["www.example.com", "bank.localhost:4280", "v1.bank.localhost"])
      expect(await signIn(host)).toEqual({ status: 412, cookie: undefined });
    for (const host of ["localhost:4280", "127.0.0.1:4280", "none.localhost"])
      expect(await signIn(host)).toMatchObject({ status: 201, cookie: expect.stringContaining("hibernaut_session") });
  });
});

describe("a token that is limited to apps", () => {
  test("adds a name whose DNS names the app", async () => {
    const refused = await add("www.example.com", limited());
    expect(refused).toMatchObject({
      status: 412,
      body: { details: { record: "_hibernaut.www.example.com", value: "app=shop" } },
    });
    expect(refused.body.message).toContain("_hibernaut.www.example.com");
    txt["_hibernaut.www.example.com"] = ["app=bank", "v=spf1 -all"];
    expect((await add("www.example.com", limited())).status).toBe(412);
    txt["_hibernaut.www.example.com"] = null;
    expect((await add("www.example.com", limited())).status).toBe(503);
    expect(server.platform.hostnames.list("shop")).toEqual([]);
    txt["_hibernaut.www.example.com"] = ["app=bank", "app=shop"];
    expect(await add("WWW.example.com.", limited())).toMatchObject({
      status: 201,
      body: { hostname: "www.example.com" },
    });
  });

  test("needs no proof for what its app has, and nobody else does", async () => {
    expect((await add("www.example.com")).status).toBe(201);
    expect((await add("www.example.com", limited())).status).toBe(201);
  });
});
