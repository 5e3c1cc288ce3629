import { connect } from "node:net";
import { text } from "node:stream/consumers";
import { HibernautError } from "@hibernaut/domain/errors";
import { beforeEach, describe, expect, test } from "vitest";
import { type TestApi, testApi } from "./helpers.ts";
import type { ApiDocument, Call } from "./openapi-check.ts";

let server: TestApi;
let call: Call;
beforeEach(async () => {
  ({ server, call } = await testApi());
});

const MACHINES = "/v1/apps/shop/machines";

describe("without a valid token", () => {
  test.each(["", "Bearer", "Bearer ", "Bearer wrong", "Basic abc", "hib_x"])("%j is 401", async (authorization) => {
    const reply = await call("GET", "/v1/apps", undefined, { headers: { authorization } });
    expect(reply).toMatchObject({ status: 401, body: { error: "unauthenticated" } });
    expect(reply.headers.get("www-authenticate")).toContain("Bearer");
  });

  test("every documented route except health and the one that signs in is refused before its body is read", async () => {
    const document = (await (await fetch(`${server.url}/openapi.json`)).json()) as ApiDocument;
    for (const [path, item] of Object.entries(document.paths)) {
      for (const method of Object.keys(item)) {
        if (path === "/v1/session" && method === "post") continue;
        const body = method === "post" ? "{ not json" : undefined;
        const reply = await call(method.toUpperCase(), path.replaceAll(/[{}]/g, ""), body, {
          headers: { authorization: "none" },
        });
        expect(reply.status, `${method} ${path}`).toBe(path === "/v1/health" ? 200 : 401);
      }
    }
  });

  test("the case of the scheme does not matter", async () => {
    expect(
      await call("GET", "/v1/apps", undefined, { headers: { authorization: `bearer ${server.token}` } }),
    ).toMatchObject({ status: 200 });
  });
});

describe("a bad request", () => {
  test.each([
    ["not JSON", '{"config":', 400],
    ["an array", "[]", 400],
    ["null", "null", 400],
    ["null for a value", '{"config":{"image":null}}', 400],
    ["text for a number", '{"config":{"image":"x","guest":{"cpus":"2"}}}', 400],
    ["number for text", '{"config":{"image":1}}', 400],
    ["text for a boolean", '{"config":{"image":"x"},"skip_launch":"true"}', 400],
    ["an unknown key", '{"config":{"image":"x"},"nam":"y"}', 400],
    ["a poisoned key", '{"__proto__":{"x":1},"config":{"image":"x"}}', 400],
    ["empty", "", 400],
    ["a file without content", '{"config":{"image":"x","files":[{"guest_path":"/a"}]}}', 400],
    ["a file that is not base64", '{"config":{"image":"x","files":[{"guest_path":"/a","raw_value":"!"}]}}', 400],
    [
      "a check without a pause",
      '{"config":{"image":"x","checks":{"up":{"type":"tcp","port":80,"interval":"0s"}}}}',
      400,
    ],
    ["more swap than there may be", '{"config":{"image":"x","init":{"swap_size_mb":32769}}}', 400],
    ["too large", JSON.stringify({ config: { image: "x".repeat(1024 * 1024) } }), 413],
    ["far too large", JSON.stringify({ config: { image: "x".repeat(8 * 1024 * 1024) } }), 413],
  ])("body: %s", async (_name, body, status) => {
    const reply = await call("POST", MACHINES, body);
    expect(reply.status).toBe(status);
    expect(reply.body.error).toBe(status === 413 ? "payload_too_large" : "invalid_argument");
    expect(server.world.store.machines.list()).toEqual([]);
  });

  test("a signal or a time that is not one, and a list of processes in an order that it does not have", async () => {
    const { body } = await call("POST", MACHINES, { config: { image: "app:1" } });
    const machine = `${MACHINES}/${body.id}`;
    for (const signal of [undefined, null, 9, "", "HUP", "sigterm", "SIGNOTHING", "SIGSIG", `SIG${"A".repeat(99)}`])
      for (const path of signal === undefined ? ["signal"] : ["signal", "stop", "restart"])
        expect((await call("POST", `${machine}/${path}`, { signal })).status, `${path} ${signal}`).toBe(400);
    for (const timeout of [-1, 1.5, 301, "5", "5s", null])
      for (const path of ["stop", "restart"])
        expect((await call("POST", `${machine}/${path}`, { timeout })).status, `${path} ${timeout}`).toBe(400);
    for (const query of ["sort_by=secret", "sort_by=__proto__", "order=up", "sort_by=pid&sort_by=cpu", "limit=1"])
      expect((await call("GET", `${machine}/ps?${query}`)).status, query).toBe(400);
  });

  test("a release command without a release, a command or a number", async () => {
    const command = (version: string, body: unknown) => call("POST", `/v1/apps/shop/releases/${version}/command`, body);
    const config = { image: "x" };
    expect(await command("1", { config })).toMatchObject({ status: 404, body: { error: "not_found" } });
    expect(await command("first", { config })).toMatchObject({ status: 400 });
    const { body } = await call("POST", "/v1/apps/shop/releases", { image: "app:1" });
    for (const wrong of [{}, { config, timeout: 0 }, { config, timeout: 21_601 }, { config, command: ["x"] }])
      expect(await command(String(body.version), wrong)).toMatchObject({ status: 400 });
    await call("POST", "/v1/apps/shop/releases/1", { status: "complete" });
    expect(await command("1", { config })).toMatchObject({ status: 412, body: { error: "failed_precondition" } });
    expect(server.world.store.machines.list()).toEqual([]);
  });

  test("an upload without a name or a manifest, and bytes that no upload needs", async () => {
    const uploads = "/v1/images/uploads";
    const config = { digest: `sha256:${"a".repeat(64)}`, size: 2 };
    const good = { name: "shop", manifest: JSON.stringify({ schemaVersion: 2, config, layers: [] }) };
    for (const body of [
      {},
      { name: "shop" },
      { ...good, name: "" },
      { ...good, name: "UPPER" },
      { ...good, name: "x".repeat(256) },
      { ...good, manifest: "" },
      { ...good, manifest: "no json" },
      { ...good, manifest: "null" },
      { ...good, manifest: '{"schemaVersion":1}' },
      { ...good, manifest: '{"config":{"digest":"sha256:a","size":1},"layers":[]}' },
      { ...good, manifest: JSON.stringify({ config: { ...config, size: -1 }, layers: [] }) },
      { ...good, manifest: JSON.stringify({ config: { ...config, size: 1e300 }, layers: [] }) },
      { ...good, manifest: JSON.stringify({ config, layers: Array.from({ length: 257 }, () => config) }) },
      { ...good, manifest: "x".repeat(600 * 1024) },
      { ...good, size: 1 },
    ])
      expect(await call("POST", uploads, body), JSON.stringify(body).slice(0, 200)).toMatchObject({ status: 400 });
    expect(await call("POST", uploads, good)).toMatchObject({ status: 200, body: { ready: false } });

    const octets = { headers: { "content-type": "application/octet-stream" } };
    const patch = (digest: string, query: string, body = "{}", init: RequestInit = octets) =>
      call("PATCH", `/v1/images/blobs/${digest}${query}`, body, init);
    for (const query of ["", "?offset=", "?offset=-1", "?offset=1.5", "?offset=x", "?offset=0&offset=1", "?off=0"])
      expect(await patch(config.digest, query), query).toMatchObject({ status: 400 });
    for (const digest of ["sha256:a", "x", "%00", "..%2f..%2fhibernaut.db"])
      expect(await patch(digest, "?offset=0"), digest).toMatchObject({ status: 400 });
    expect(await patch(`sha256:${"b".repeat(64)}`, "?offset=0")).toMatchObject({ status: 404 });
    expect(await patch(config.digest, "?offset=1")).toMatchObject({ status: 409, body: { details: { offset: 0 } } });
    expect(await patch(config.digest, "?offset=999999999999999")).toMatchObject({ status: 409 });
    expect(await patch(config.digest, "?offset=0", "too long")).toMatchObject({ status: 400 });
    expect(await patch(config.digest, "?offset=0", "{}")).toMatchObject({
      status: 400,
      body: { details: { offset: 0 } },
    });
    expect(await patch(config.digest, "?offset=0", "{}", {})).toMatchObject({ status: 415 });
    expect(await call("PATCH", `/v1/images/blobs/${config.digest}?offset=0`)).toMatchObject({ status: 200 });
    expect(await call("DELETE", `${uploads}/sha256:nope`)).toMatchObject({ status: 400 });
    expect(await call("DELETE", `${uploads}/${config.digest}`)).toMatchObject({ status: 404 });
    const { body } = await call("GET", uploads);
    expect(body.uploads).toMatchObject([{ done_bytes: 0, size_bytes: 2 }]);
    expect(await call("DELETE", `${uploads}/${body.uploads[0].digest}`)).toMatchObject({ status: 200 });
    expect(server.logged).toEqual([]);
  });

  test("a content type other than JSON is 415", async () => {
    for (const type of ["text/plain", "application/x-www-form-urlencoded", "application/xml", "nonsense"]) {
      const reply = await call("POST", MACHINES, "a=b", { headers: { "content-type": type } });
      expect(reply, type).toMatchObject({ status: 415, body: { error: "unsupported_media_type" } });
    }
  });

  test("unknown routes, methods and ids are 404, in the usual format", async () => {
    for (const [method, path] of [
      ["GET", "/"],
      ["GET", "/v2/apps"],
      ["PUT", "/v1/apps"],
      ["PATCH", MACHINES],
      ["DELETE", "/v1/health"],
      ["GET", `${MACHINES}/nope`],
      ["GET", `${MACHINES}/${"0".repeat(14)}`],
      ["POST", `${MACHINES}/..%2f..%2fetc/start`],
      ["GET", "/v1/apps/%00"],
      ["DELETE", "/v1/tokens/nope"],
    ] as const) {
      const reply = await call(method, path);
      expect(reply, `${method} ${path}`).toMatchObject({ status: 404, body: { error: "not_found" } });
    }
    for (const name of ["%zz", "a".repeat(5000)]) {
      const { status, body } = await call("GET", `/v1/apps/${name}`);
      expect(status).toBe(400);
      expect(body.message.length).toBeLessThan(200);
    }
  });

  test("bytes that are not HTTP get an HTTP reply", async () => {
    const socket = connect({ host: "127.0.0.1", port: Number(new URL(server.url).port) });
    socket.write("NONSENSE\r\n\r\n");
    const answer = await text(socket);
    expect(answer).toMatch(/^HTTP\/1.1 400 Bad Request\r\n/);
    expect(JSON.parse(answer.split("\r\n\r\n")[1] ?? "")).toMatchObject({ error: "invalid_argument" });
  });
});

describe("an error", () => {
  test("in our code is 500, is logged with its stack, and its text is not shown", async () => {
    server.platform.apps.list = () => {
      throw new Error("secret detail");
    };
    const { status, body } = await call("GET", "/v1/apps");
    expect(status).toBe(500);
    expect(JSON.stringify(body)).not.toContain("secret");
    expect(body).toMatchObject({ error: "internal" });
    expect(server.logged).toMatchObject([
      { reqId: body.request_id, err: { message: "secret detail", stack: expect.stringContaining("at ") } },
    ]);
  });

  test.each([
    ["resource_exhausted", 429, { retry_after_s: 2.5 }, "3"],
    ["unavailable", 503, {}, "1"],
  ] as const)("%s says when to try again", async (code, status, details, after) => {
    server.platform.apps.list = () => {
      throw new HibernautError(code, "Later.", details);
    };
    const reply = await call("GET", "/v1/apps");
    expect(reply.status).toBe(status);
    expect(reply.headers.get("retry-after")).toBe(after);
  });

  test("has the client's request id if it is safe to repeat", async () => {
    const id = async (wanted: string) =>
      (await call("GET", "/v1/apps/x", undefined, { headers: { "x-request-id": wanted } })).body.request_id;
    expect(await id("my-id_1")).toBe("my-id_1");
    expect(await id("bad id <script>")).toMatch(/^[0-9a-f-]{36}$/);
  });
});
