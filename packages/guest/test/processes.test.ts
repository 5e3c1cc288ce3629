/** The agent's list of processes, as a program that looks at this computer. Under the sanitizers. */
import { type ChildProcess, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { promisify } from "node:util";
import { afterEach, beforeAll, expect, test } from "vitest";
import { openTempFolder } from "../../platform/test/helpers/temp.ts";
import { agentParts, compile, TASK_PARTS } from "./compile.ts";

/** A list of this computer's processes, in bytes. */
const MOST_BYTES = 64 * 1024 * 1024;

let tool: string;
let folder: string;
const running: ChildProcess[] = [];
beforeAll(async () => {
  const { path, dispose } = await openTempFolder("ps-tool");
  folder = path;
  tool = await compile(path, "task_tool", ["test/task_tool.c", ...agentParts(TASK_PARTS)]);
  return dispose;
}, 60_000);
afterEach(() => {
  for (const child of running.splice(0)) child.kill("SIGKILL");
});

/** What the task says of the process of a script: the script says a line when it can be looked at. */
async function listed(script: string, name = "node"): Promise<{ fields: string[]; said: string }> {
  const child = spawn(process.execPath, ["-e", script], {
    argv0: name,
    cwd: folder,
    stdio: ["pipe", "pipe", "inherit"],
  });
  running.push(child);
  const [line] = (await once(child.stdout, "data")) as [Buffer];
  const { stdout } = await promisify(execFile)(tool, ["ps"], { maxBuffer: MOST_BYTES });
  const words = stdout.split("\0");
  // No other field is likely to be this number before its own directory.
  const at = words.findIndex((word, index) => word === String(child.pid) && words[index + 6] === folder);
  expect(at, "it is in the list").toBeGreaterThanOrEqual(0);
  return { fields: words.slice(at), said: line.toString().trim() };
}

test("a process has its times, memory, arguments and directory, and where it listens, for TCP and UDP", async () => {
  const script = `
    const server = require("node:net").createServer().listen(0, "127.0.0.1", () => {
      const socket = require("node:dgram").createSocket("udp6").bind(0, "::1", () => {
        console.log(server.address().port + " " + socket.address().port);
      });
    });`;
  const { fields, said } = await listed(script);
  const [tcp, udp] = said.split(" ");
  const [, started, ran, cpu, rss, command] = fields;
  for (const number of [started, ran, cpu, rss]) expect(number).toMatch(/^\d+$/);
  expect(Number(ran)).toBeLessThan(60_000);
  expect(Number(rss)).toBeGreaterThan(10 * 1024 * 1024);
  expect(command).toMatch(/^node -e \s*const server/);
  const [count = "", ...sockets] = fields.slice(7);
  const pairs = Array.from({ length: Number(count) }, (_, index) => sockets.slice(2 * index, 2 * index + 2).join(" "));
  expect(pairs.sort()).toEqual([`tcp 127.0.0.1:${tcp}`, `udp6 [::1]:${udp}`]);
});

test("a name with parentheses and a newline moves no field, and a long command is cut", async () => {
  const name = ") R 1\n(";
  const script = `process.title = ${JSON.stringify(name)}; console.log("ready"); setInterval(() => {}, 1e6); // ${"x".repeat(9000)}`;
  const { fields } = await listed(script, "x".repeat(5000));
  expect(Number(fields[4])).toBeGreaterThan(10 * 1024 * 1024);
  expect(Buffer.byteLength(fields[5] ?? "")).toBeLessThan(4096);
  expect(fields[7]).toBe("0");
});
