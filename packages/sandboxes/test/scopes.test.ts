/** Each route of the port of sandboxes, for its owner and for everyone else: what is refused tells nothing and changes nothing. */
import { createHash } from "node:crypto";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { UploadLinks } from "../src/build/links.ts";
import { contentsOf, DOMAIN, methods, openPort, type Port, plainRoutes, type Reply } from "./port.ts";
import { bodyOf, CONTROL, INSIDE, type Row } from "./scope-table.ts";
import { inside, newTenant, stateOf, type Tenant } from "./tenant.ts";

let port: Port;
let a: Tenant;
let b: Tenant;
const kinds = new Map(methods().map(({ path, kind }) => [path, kind]));

beforeAll(async () => {
  port = await openPort();
  [a, b] = [await newTenant(port, "shop"), await newTenant(port, "bank")];
});
afterAll(() => port.close());

/** Fills the path in with what is the tenant's. */
function filled(path: string, of: Tenant, sandbox = of.running): string {
  const template = /files|builds/.test(path) ? of.built : of.template;
  return path
    .replace(":sandboxID", sandbox)
    .replace(":templateID", template)
    .replace(":volumeID", path.startsWith("DELETE /volumes") ? of.freeVolume : of.volume)
    .replace(":buildID", of.build)
    .replace(":hash", of.hash);
}

function control(
  route: string,
  row: Row,
  of: Tenant,
  headers: Record<string, string>,
  sandbox?: string,
): Promise<Reply> {
  const { type, body } = bodyOf(row, of);
  return port.ask(filled(route, of, sandbox) + (row.query?.(of) ?? ""), {
    headers: { ...headers, ...(type && { "content-type": type }) },
    ...(body !== undefined && { body }),
  });
}

function within(route: string, row: Row, of: Tenant, headers: Record<string, string>, query = ""): Promise<Reply> {
  const kind = kinds.get(route.split(" ")[1] ?? "");
  const { type, body } = bodyOf(row, of, kind);
  return port.ask(route + (row.query?.(of) ?? "") + query, {
    headers: { ...headers, ...(type && { "content-type": type }) },
    ...(body !== undefined && { body }),
    endless: kind === "server_streaming",
  });
}

/** A refusal in the form of the clients, which names nothing of A's: not even what the request named. */
function expectRefused(what: string, { status, body }: Reply, expected: number, said = ""): void {
  expect(status, `${what}: ${body}`).toBe(expected);
  if (!what.includes("HEAD")) {
    const told = JSON.parse(body) as object;
    expect(told, what).toEqual({
      code: expected,
      message: expect.any(String) as string,
      ...("sandboxId" in told && { sandboxId: expect.any(String) }),
    });
  }
  expectNothingOf(a, what, body, said);
}

/** `said`: the request, which a reply may repeat. */
function expectNothingOf(of: Tenant, what: string, body: string, said = ""): void {
  const words = [
    ...Object.values(of),
    `label-of-${of.app}`,
    `variable-of-${of.app}`,
    `${of.app}-snapshot`,
    contentsOf(of.running),
  ];
  const told = words.filter((word) => body.includes(word) && !said.includes(word));
  expect(told, `${what}: ${body}`).toEqual([]);
}

/** Does it, and expects that nothing of A's has changed, and that none of its guests were asked for anything. */
async function changingNothing(work: () => Promise<void>): Promise<void> {
  const before = await stateOf(port, a.app);
  port.done.length = 0;
  await work();
  expect(JSON.parse(await stateOf(port, a.app))).toEqual(JSON.parse(before));
  const mine = new Set(port.platform.machines.list(a.app).map(({ record }) => record.id));
  expect(port.done.filter(({ machine }) => mine.has(machine))).toEqual([]);
}

test("the tables have every route, and no other", () => {
  const rows = Object.keys(CONTROL);
  const heads = rows.filter((route) => route.startsWith("GET")).map((route) => route.replace("GET", "HEAD"));
  expect([...rows, ...heads].toSorted()).toEqual(port.routes.toSorted());
  const paths = methods().map(({ path }) => `POST ${path}`);
  expect(Object.keys(INSIDE).toSorted()).toEqual([...plainRoutes(), ...paths].toSorted());
});

describe("control", () => {
  // What is theirs comes last: from then on, another app has something of the same name.
  const all = Object.entries(CONTROL);
  const closed = ["named", "own"].flatMap((which) => all.filter(([, { kind }]) => kind === which));

  test("no route opens without a key of one app that may make sandboxes", async () => {
    const revoked = port.key(["admin"], [a.app]);
    const { tokens } = port.world.store;
    tokens.revoke(tokens.list().at(-1)?.id ?? "", new Date().toISOString());
    const keys: [who: string, status: number, headers: Record<string, string>][] = [
      ["nobody", 401, {}],
      ["a malformed key", 401, { "x-api-key": `${a.key}0` }],
      ["an empty key", 401, { "x-api-key": "" }],
      ["a key that was revoked", 401, { "x-api-key": revoked }],
      ["a key of all apps", 401, { "x-api-key": port.key(["admin"], null) }],
      ["a key of two apps", 401, { "x-api-key": port.key(["admin"], [a.app, b.app]) }],
      ["a key that may only read", 403, { authorization: `Bearer ${port.key(["read"], [a.app])}` }],
      ["a key that may only deploy", 403, { "x-api-key": port.key(["deploy"], [a.app]) }],
      ["the access token of a sandbox", 401, { "x-api-key": a.token }],
      ["the access token in its own header", 401, { "x-access-token": a.token }],
    ];
    await changingNothing(async () => {
      for (const [route, row] of closed)
        for (const [who, status, headers] of keys)
          expectRefused(`${who} ${route}`, await control(route, row, a, headers), status);
    });
  });

  test("a key of another app finds nothing of this one, wherever it is named", async () => {
    await changingNothing(async () => {
      for (const [route, row] of closed)
        for (const sandbox of new Set([a.running, route.includes(":sandboxID") ? a.paused : a.running])) {
          const reply = await control(route, row, a, { "x-api-key": b.key }, sandbox);
          const said = filled(route, a, sandbox) + JSON.stringify(row.body?.(a) ?? "") + (row.query?.(a) ?? "");
          if (row.kind === "named") expectRefused(`B ${route}`, reply, 404, said);
          else expect(reply.status, `B ${route}: ${reply.body}`).toBe(row.status);
          expectNothingOf(a, `B ${route}`, reply.body, said);
        }
    });
  });

  test.each<[string, (of: Tenant) => string, object?]>([
    ["a template by its id", ({ templateId }) => `DELETE /templates/${templateId}`],
    ["a build under another name", ({ build }) => `GET /templates/bank-built/builds/${build}/status`],
    ["a template in a path of a team", ({ template }) => `GET /templates/aliases/shop%2F${template}`],
    ["a tag", ({ template }) => `DELETE /templates/${template}:v1`],
  ])("nor does it find %s", async (_title, route) => {
    await changingNothing(async () =>
      expectRefused("B", await port.ask(route(a), { headers: { "x-api-key": b.key } }), 404, route(a)),
    );
  });

  test("a build of one app begins from no template and no sandbox of another", async () => {
    await changingNothing(async () => {
      const route = `POST /v2/templates/${b.built}/builds/${b.build}`;
      for (const fromTemplate of [a.template, a.templateId, `${a.template}:v1`, a.running]) {
        const body = JSON.stringify({ fromTemplate });
        const reply = await port.ask(route, {
          headers: { "x-api-key": b.key, "content-type": "application/json" },
          body,
        });
        expectRefused("B", reply, 404, body);
      }
    });
  });

  test("a link for uploads opens what it was made for, until it ends", async () => {
    const links = new UploadLinks(Buffer.alloc(32, 1));
    const app = port.platform.apps.get(a.app);
    const ended = links.make({ app, hash: a.hash }, 0);
    const [said = "", signature = ""] = a.link.replace("?link=", "").split(".");
    const other = Buffer.from(said, "base64url").toString().replace(a.app, b.app);
    const gone = links.make({ app: { ...app, createdAt: "2020-01-01T00:00:00.000Z" }, hash: a.hash });
    await changingNothing(async () => {
      for (const link of ["", "x", ended, gone, said, `${Buffer.from(other).toString("base64url")}.${signature}`])
        expectRefused(
          link,
          await port.ask(`PUT /uploads?link=${link}`, { body: "x", headers: { "x-api-key": a.key } }),
          403,
        );
    });
  });
});

describe("files of a volume", () => {
  const closed = Object.entries(CONTROL).filter(([, { kind }]) => kind === "volume");

  test("they open with the token of that volume only", async () => {
    const [signature = ""] = a.volumeToken.split(".").slice(-1);
    const keys: [who: string, token: string][] = [
      ["the token of another app's volume", b.volumeToken],
      ["the app's key", a.key],
      ["the access token of the sandbox that has it", a.token],
      ["the token without its app", signature],
      ["the token with another app", `${b.app}.${signature}`],
      ["the token of a longer name", `${a.volumeToken}0`],
      ["an empty token", ""],
    ];
    await changingNothing(async () => {
      for (const [route, row] of closed) {
        expectRefused(`nobody ${route}`, await control(route, row, a, { "x-api-key": a.key }), 401);
        for (const [who, token] of keys)
          expectRefused(`${who} ${route}`, await control(route, row, a, { authorization: `Bearer ${token}` }), 401);
      }
    });
  });

  test("no sandbox of one app is made with a volume of another", async () => {
    await changingNothing(async () => {
      for (const name of [a.volume, a.freeVolume, `${a.app}-free-1`]) {
        const body = JSON.stringify({ templateID: b.template, volumeMounts: [{ name, path: "/data" }] });
        const headers = { "x-api-key": b.key, "content-type": "application/json" };
        expectRefused("B", await port.ask("POST /sandboxes", { headers, body }), 404, body);
      }
    });
  });
});

describe("inside", () => {
  const closed = Object.entries(INSIDE).filter(([, { kind }]) => kind === "named");
  const signed = (path: string, token: string, until: number) => {
    const hash = createHash("sha256").update(`${path}:read::${token}:${until}`).digest("base64").replace(/=+$/, "");
    return `&signature=${encodeURIComponent(`v1_${hash}`)}&signature_expiration=${until}`;
  };

  test("a sandbox opens with its own access token only, however it is named", async () => {
    const keys: [who: string, headers: Record<string, string>][] = [
      ["nobody", {}],
      ["the token of another app's sandbox", { "x-access-token": b.token }],
      ["the token of another sandbox of the app", { "x-access-token": a.pausedToken }],
      ["the token for its ports", { "x-access-token": a.traffic, "e2b-traffic-access-token": a.traffic }],
      ["the app's key as the token", { "x-access-token": a.key }],
      ["the app's key", { "x-api-key": a.key, authorization: `Bearer ${a.token}` }],
      ["the token twice", { "x-access-token": `${a.token}, ${a.token}` }],
    ];
    await changingNothing(async () => {
      for (const [route, row] of closed)
        for (const id of [a.running, a.paused])
          for (const [who, headers] of keys) {
            const token =
              id === a.paused && headers["x-access-token"] === a.pausedToken ? { "x-access-token": a.token } : {};
            const by = { host: `49983-${id}.${DOMAIN}` };
            expectRefused(
              `${who} ${route}`,
              await within(route, row, a, { "e2b-sandbox-id": id, ...headers, ...token }),
              401,
            );
            expectRefused(`${who} ${route} by name`, await within(route, row, a, { ...by, ...headers, ...token }), 401);
          }
    });
  });

  test("a signature opens the file and the use that it was made for, in one sandbox, until it ends", async () => {
    const path = "/home/user/a";
    const now = Math.floor(Date.now() / 1000);
    const right = signed(path, a.token, now + 60);
    await changingNothing(async () => {
      for (const [what, route, query, id = a.running] of [
        ["expired", "GET /files", signed(path, a.token, now - 1)],
        ["of another sandbox", "GET /files", signed(path, b.token, now + 60)],
        ["for another sandbox", "GET /files", right, a.paused],
        ["for reading", "POST /files", right],
        ["with a later end", "GET /files", right.replace(String(now + 60), String(now + 61))],
        ["without its end", "GET /files", right.replace(/&signature_expiration.*/, "")],
        ["for another user", "GET /files", `${right}&username=root`],
        ["of another file", "GET /files", signed("/etc/passwd", a.token, now + 60)],
        ["for no file", "GET /envs", right],
      ] as const)
        expectRefused(what, await within(route, INSIDE[route] as Row, a, inside(id), query), 401);
    });
    expect(await within("GET /files", INSIDE["GET /files"] as Row, a, inside(a.running), right)).toMatchObject({
      status: 200,
      body: contentsOf(a.running),
    });
  });

  test("programs and watchers of one sandbox are not there for the owner of another", async () => {
    await changingNothing(async () => {
      for (const route of ["Connect", "Update", "SendInput", "StreamInput", "CloseStdin", "SendSignal"]) {
        const path = `POST /process.Process/${route}`;
        const { status, body } = await within(path, INSIDE[path] as Row, a, inside(b.running, b.token));
        expect([status, body], path).toEqual([
          kinds.get(path.slice(5)) === "unary" ? 404 : 200,
          expect.stringContaining("not_found"),
        ]);
        expectNothingOf(a, path, body, a.program);
      }
      for (const route of ["GetWatcherEvents", "RemoveWatcher"]) {
        const path = `POST /filesystem.Filesystem/${route}`;
        const { status, body } = await within(path, INSIDE[path] as Row, a, inside(b.running, b.token));
        expect([status, JSON.parse(body)]).toMatchObject([404, { code: "not_found" }]);
        expectNothingOf(a, path, body, a.watcher);
      }
    });
  });

  test("a port of a sandbox that is closed to the public opens with its traffic token only", async () => {
    await changingNothing(async () => {
      for (const token of ["", b.traffic, a.token, a.key])
        for (const headers of [
          { "e2b-sandbox-id": a.running, "e2b-sandbox-port": "8000" },
          { host: `8000-${a.running}.${DOMAIN}` },
        ])
          for (const upgrade of [{}, { connection: "upgrade", upgrade: "websocket" }])
            expectRefused(
              "port",
              await port.ask("GET /", { headers: { ...headers, ...upgrade, "e2b-traffic-access-token": token } }),
              403,
            );
    });
    const headers = { "e2b-sandbox-id": a.running, "e2b-sandbox-port": "8000", "e2b-traffic-access-token": a.traffic };
    expect(await port.ask("GET /", { headers })).toMatchObject({ status: 200, body: "port" });
  });
});

describe("an owner gets in everywhere, and each gets their own only", () => {
  test.each(Object.entries(INSIDE))("inside: %s", async (route, row) => {
    const reply = await within(route, row, a, inside(a.running, a.token));
    expect(reply.status, reply.body).toBe(row.status);
    expect(reply.body).not.toContain('"error"');
    expectNothingOf(b, route, reply.body);
  });

  test.each(Object.entries(CONTROL))("control: %s", async (route, row) => {
    const by = { "x-api-key": a.key, ...(row.kind === "volume" && { authorization: `Bearer ${a.volumeToken}` }) };
    const head = route.startsWith("GET") ? await control(route.replace("GET", "HEAD"), row, a, by) : undefined;
    const reply = await control(route, row, a, by);
    expect(reply.status, reply.body).toBe(row.status);
    if (head) expect([head.status, head.body]).toEqual([row.status, ""]);
    if (row.kind === "own" && route.startsWith("GET"))
      expect(reply.body).toMatch(new RegExp(`${a.running}|${a.template}|shop-snapshot|${a.volume}`));
    expectNothingOf(b, route, reply.body);
  });

  test("nothing of it was a fault of the platform", () => expect(port.logged).toEqual([]));
});
