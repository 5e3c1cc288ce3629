/** The client's npm package in a program that runs in Bun. Long, because Bun is 100 MB. */
import { execFile } from "node:child_process";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, onTestFinished, test } from "vitest";
import { bun } from "../../../../scripts/lib/test-bun.mjs";
import { startApi } from "../api/helpers.ts";
import { userOf } from "./npm-user.ts";

/** What differs between runtimes: requests, WebSockets with input and output, streams both ways, refusals, aborts. */
const PROGRAM = `
import { Readable } from "node:stream";
import { ApiError, HibernautClient } from "@hibernaut/client";

const client = new HibernautClient({ apiUrl: process.env.API_URL, token: process.env.TOKEN });
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

test("a program in Bun does with it what one in Node does", { timeout: 300_000 }, async () => {
  const runtimes = [process.execPath, await bun()];
  const folder = await userOf("@hibernaut/client", ["ws"]);
  await writeFile(join(folder, "use.mjs"), PROGRAM);
  for (const runtime of runtimes) {
    const server = await startApi();
    onTestFinished(() => server.close());
    const env = { PATH: process.env.PATH, API_URL: server.url, TOKEN: server.token };
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
