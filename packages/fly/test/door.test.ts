/** Who may come in at Fly's port, before anything is read of what they send. */
import { once } from "node:events";
import { connect } from "node:net";
import { text } from "node:stream/consumers";
import type { Scope } from "@hibernaut/domain/scopes";
import { expect, test } from "vitest";
import { createToken } from "../../api/src/tokens.ts";
import { startFly } from "./helpers.ts";

const head = (authorization: string) =>
  `POST /v1/apps HTTP/1.1\r\nhost: a\r\n${authorization}content-type: application/json\r\ncontent-length: 600000\r\nconnection: close\r\n\r\n`;

test("nor that of a token which may only read, or reaches another app", async () => {
  const { url, platform } = await startFly();
  for (const app of ["shop", "bank"]) platform.platform.apps.create(app);
  const token = (scope: Scope, app: string) =>
    createToken(platform.tokens, `${scope} ${app}`, { scopes: [scope], apps: [app] }).token;
  const begin = async (secret: string) => {
    const socket = connect(Number(new URL(url).port), "127.0.0.1");
    await once(socket, "connect");
    socket.write(head(`authorization: Bearer ${secret}\r\n`).replace("/v1/apps ", "/v1/apps/shop/machines "));
    return socket;
  };
  expect(await text(await begin(token("read", "shop")))).toMatch(/^HTTP\/1.1 403 /);
  expect(await text(await begin(token("deploy", "bank")))).toMatch(/^HTTP\/1.1 404 [^]*app not found/);
});

test.each([
  ["without a token", "", "needs a token"],
  ["with one that is unknown", "authorization: Bearer nonsense\r\n", "unknown or revoked. Set FLY_API_TOKEN"],
])("nobody's body is waited for who comes %s", async (_who, authorization, words) => {
  const { url } = await startFly();
  const socket = connect(Number(new URL(url).port), "127.0.0.1");
  await once(socket, "connect");
  socket.write(head(authorization));
  expect(await text(socket)).toMatch(new RegExp(`^HTTP/1.1 401 [^]*${words}`));
});

test("what cannot be written as text is refused in words", async () => {
  const { call } = await startFly();
  const graphql = '{"query":"{a:app(name:$appName){id}}","variables":{"appName":"\\ud800"}}';
  expect(await call("POST", "/graphql", graphql)).toMatchObject({ status: 404 });
  await call("POST", "/v1/apps", { name: "shop" });
  expect(await call("POST", "/v1/apps/shop/secrets", '{"values":{"\\ud800":null}}')).toMatchObject({ status: 404 });
});

test("what there is not is named as it is, and advice fits this port", async () => {
  const { call } = await startFly();
  await call("POST", "/v1/apps", { name: "shop" });
  const errorOf = async (...words: Parameters<typeof call>) => {
    const { status, body } = await call<{ error: string }>(...words);
    return `${status} ${body.error}`;
  };
  const config = { image: "app:1" };
  const mounts = [{ volume: "vol_4ql1xyz8ozzk7y5m", path: "/data" }];
  expect(await errorOf("POST", "/v1/apps/shop/machines", { config: { ...config, mounts } })).toMatch(
    /^404 volume not found/,
  );
  expect(await errorOf("DELETE", "/v1/apps/shop/secrets/PIN")).toMatch(/^404 secret not found/);
  expect(await errorOf("GET", "/v1/apps/shop/machines/none")).toMatch(/^404 machine not found/);
  expect(await errorOf("GET", "/v1/apps/none/machines/none")).toMatch(/^404 app not found/);
  expect(await errorOf("GET", "/v1/apps/shop/nope")).toMatch(/^404 There is no GET .*docs\/fly-routes.md/);
  const { body: machine } = await call<{ id: string }>("POST", "/v1/apps/shop/machines", { config });
  const at = `/v1/apps/shop/machines/${machine.id}`;
  expect(await errorOf("GET", `${at}/lease`)).toMatch(/^404 the machine's lease not found/);
  const { body: lease } = await call<{ nonce: string }>("POST", `${at}/lease?ttl=60`);
  expect(await errorOf("POST", `${at}/cordon`)).toMatch(/^409 lease currently held by .*`fly-machine-lease-nonce`/);
  for (const header of ["fly-machine-lease-nonce", "hibernaut-lease-nonce"])
    expect((await call("POST", `${at}/cordon`, undefined, { [header]: lease.nonce })).status).toBe(200);
  expect(await errorOf("POST", `${at}/lease`, { ttl: -5 })).toMatch(/^400 /);
  expect(await errorOf("POST", `${at}/exec`, {})).toMatch(/^400 invalid_argument: cmd is missing/);
});
