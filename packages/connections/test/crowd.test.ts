/** A process with few descriptors, which clients of two addresses want for themselves: over real sockets. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { writeFile } from "node:fs/promises";
import { connect, type Socket } from "node:net";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { freePort } from "../../../scripts/lib/free-port.mjs";
import { tempFolder } from "../../platform/test/helpers/temp.ts";
import { CLOSE, httpApp, RawClient, statuses, until } from "../../proxy/test/http/helpers.ts";
import { certificate } from "../../proxy/test/http/secured.ts";
import type { ConnectionBudget } from "../src/budget.ts";

/** As `ulimit -n` sets it. */
const FILES = 256;
/** Together more than the process may have of anything. */
const EACH = 200;
/** Less than a quarter of the descriptors, of which Node itself has some. */
const NEEDED = 24;

interface Told {
  ports: { http: number; https: number; tcp: number };
  error: string;
  counts: ConnectionBudget["counts"];
  clients: number;
}

async function smallHost(appPort: number) {
  const folder = await tempFolder("certificates");
  const { key, cert } = certificate("shop.test");
  await writeFile(join(folder, "default.key"), key);
  await writeFile(join(folder, "default.crt"), cert);
  const program = join(import.meta.dirname, "small-host.ts");
  const words = [process.execPath, program, String(appPort), String(await freePort()), folder];
  const child = spawn("sh", ["-c", `ulimit -n ${FILES} && exec "$@"`, "sh", ...words], {
    stdio: ["ignore", "inherit", "inherit", "ipc"],
  });
  onTestFinished(async () => {
    child.kill("SIGKILL");
    if (child.exitCode === null && child.signalCode === null) await once(child, "exit");
  });
  const told = async () => (await once(child, "message"))[0] as Told;
  const { ports } = await told();
  const opensFiles = async () => {
    const answer = told();
    child.send(NEEDED);
    return answer;
  };
  return { ports, opensFiles };
}

/** Opens connections from an address, on which it says nothing, and opens another for each that it loses. */
function idler(localAddress: string, ports: number[]) {
  const open = new Set<Socket>();
  let opened = 0;
  const more = () => {
    opened += 1;
    const socket = connect({ host: "127.0.0.1", port: ports[opened % ports.length] ?? 0, localAddress });
    socket.on("error", () => {}).on("close", () => open.delete(socket));
    socket.on("connect", () => open.add(socket));
  };
  onTestFinished(() => {
    for (const socket of open) socket.destroy();
  });
  return { open, more, opened: () => opened };
}

test("two addresses with more idle connections than there are descriptors keep nobody out, and no file closed", async () => {
  const app = await httpApp((_request, response) => void response.end("hello"));
  const { ports, opensFiles } = await smallHost(app.port);
  const polite = async () => {
    const socket = connect({ host: "127.0.0.1", port: ports.http, allowHalfOpen: true });
    const client = new RawClient(socket);
    client.send(`GET / HTTP/1.1\r\n${CLOSE}`);
    await client.ends();
    socket.destroy();
    return statuses(client.text);
  };
  const idlers = ["127.0.0.2", "127.0.0.3"].map((address) => idler(address, Object.values(ports)));
  const answers: number[][] = [];
  for (let count = 0; count < EACH; count += 1) {
    for (const { more } of idlers) more();
    if (count % 10 === 0) answers.push(await polite());
  }
  expect(answers).toEqual(answers.map(() => [200]));
  const { error, counts, clients } = await opensFiles();
  expect(error).toBe("");
  expect(counts.open).toBeLessThanOrEqual(clients);
  expect(counts.shed).toBeGreaterThan(2 * EACH - FILES);
  // They have lost the connections that the process closed, and neither has more than half.
  await until(() => idlers.every(({ open }) => open.size <= clients / 2 + 1), "the idle ones to be closed");
  expect(await polite()).toEqual([200]);
});
