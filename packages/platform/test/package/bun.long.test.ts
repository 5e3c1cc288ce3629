/** The client's npm package in a program that runs in Bun, or in the oldest Node. Long, because Bun is 100 MB. */
import { execFile } from "node:child_process";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, onTestFinished, test } from "vitest";
import { bun } from "../../../../scripts/lib/test-bun.mjs";
import { oldNode } from "../../../../scripts/lib/test-nodes.mjs";
import { startApi } from "../../../api/test/helpers.ts";
import { makeAuthority } from "../../../cli/test/authority.ts";
import { userOf } from "./npm-user.ts";

const LIMIT = { timeout: 300_000 };

/** What differs between runtimes: requests, WebSockets with input and output, streams both ways, refusals, aborts. */
const PROGRAM = `
import { readFileSync } from "node:fs";
import { Readable } from "node:stream";
import { ApiError, HibernautClient } from "@hibernaut/client";

const { API_URL: apiUrl, TOKEN: token, CERT, KEY } = process.env;
const clientCertificate = CERT && { cert: readFileSync(CERT, "utf8"), key: readFileSync(KEY, "utf8") };
const client = new HibernautClient({ apiUrl, token, ...(CERT && { clientCertificate }) });
const codeOf = (call) => call.then(() => "none", (error) => (error instanceof ApiError ? error.code : error.name));
await client.createApp("demo");
await client.createMachine("demo", { name: "web", config: { image: "app:1", services: [{ internal_port: 8080 }] } });
console.log(await client.waitForMachine("demo", "web", { state: ["running"] }));
await client.suspendMachine("demo", "web");
await client.waitForMachine("demo", "web", { state: ["suspended"] });
await client.startMachine("demo", "web");
await client.waitForMachine("demo", "web", { state: ["running"] });
console.log((await client.getMachine("demo", "web")).last_boot.kind);

const session = await client.openExec("demo", "web", { command: ["cat"], stdin: true });
session.stderr.resume();
session.stdin.end("a".repeat(200_000));
let bytes = 0;
for await (const chunk of session.stdout) bytes += chunk.length;
console.log(bytes, (await session.exit).exit_code);

const input = Readable.from([Buffer.from("2 7\\n")]);
console.log((await client.writeArchive("demo", "web", "/tmp", input)).entries);
for await (const { stream } of client.readLogs("demo", { limit: 1 })) console.log(stream);
console.log(await codeOf(client.openExec("demo", "nothing", { command: ["true"] })));
const late = { state: ["stopped"], signal: AbortSignal.timeout(200) };
console.log(await codeOf(client.waitForMachine("demo", "web", late)));
console.log(await codeOf(new HibernautClient({ apiUrl: "http://127.0.0.1:9", token: "t" }).getApp("demo")));
`;

test.each([
  ["over HTTP", false],
  ["over TLS, with a client certificate", true],
])("a program in Bun, or the oldest Node, does with it what one in Node does, %s", LIMIT, async (_how, secure) => {
  const runtimes = [process.execPath, oldNode("20"), await bun()];
  const folder = await userOf("@hibernaut/client", ["ws"]);
  await writeFile(join(folder, "use.mjs"), PROGRAM);
  const authority = secure ? await makeAuthority() : undefined;
  const [api, ann] = [authority?.sign("api"), authority?.sign("ann")];
  for (const runtime of runtimes) {
    const server = await startApi(api && { tls: { ...api, clientCa: authority?.ca } });
    onTestFinished(() => server.close());
    const files = { CERT: ann?.cert, KEY: ann?.key, NODE_EXTRA_CA_CERTS: authority?.ca };
    const env = { PATH: process.env.PATH, API_URL: server.url, TOKEN: server.token, ...files };
    const { stdout } = await promisify(execFile)(runtime, ["use.mjs"], { cwd: folder, env });
    expect(stdout.trim().split("\n"), runtime).toEqual([
      "running",
      "resume",
      "200000 0",
      "2",
      "platform",
      "not_found",
      "TimeoutError",
      "unavailable",
    ]);
  }
});
