import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { startCli, type TestCli } from "./helpers.ts";

let cli: TestCli;
let ids: string[];

beforeAll(async () => {
  cli = await startCli();
  const { machines } = cli.server;
  const made = [0, 1].map(() => machines.create("shop", { config: { image: "x" }, skipLaunch: true }));
  ids = (await Promise.all(made)).map(({ record }) => record.id);
  machines.print(ids[0] ?? "", "hello", "stdout", "2026-01-01T00:00:00.000Z");
  machines.print(ids[1] ?? "", "oh no", "stderr", "2026-01-01T00:00:01.000Z");
  machines.print(ids[0] ?? "", "suspend: running -> suspending.", "platform", "2026-01-01T00:00:02.000Z");
}, 60_000);
afterAll(() => cli.close());

test("lines have time, machine, stream and text, without colours in a pipe", async () => {
  const [one = "", two = ""] = ids.map((id) => id.slice(0, 6));
  expect(await cli.hibernaut(["logs"])).toEqual({
    code: 0,
    stderr: "",
    stdout:
      `2026-01-01T00:00:00.000Z ${one} stdout   hello\n` +
      `2026-01-01T00:00:01.000Z ${two} stderr   oh no\n` +
      `2026-01-01T00:00:02.000Z ${one} platform suspend: running -> suspending.\n`,
  });
});

test("lines are chosen by machine, stream, time and count", async () => {
  const texts = async (...args: string[]) =>
    (await cli.hibernaut(["logs", ...args, "--json"])).stdout
      .split("\n")
      .filter((line) => line !== "")
      .map((line) => (JSON.parse(line) as { text: string }).text);
  expect(await texts("-a", "shop", "-m", ids[1] ?? "")).toEqual(["oh no"]);
  expect(await texts("--machine", ids[0] ?? "", "-m", ids[1] ?? "")).toHaveLength(3);
  expect(await texts("--stream", "stdout", "--stream", "stderr")).toEqual(["hello", "oh no"]);
  expect(await texts("--since", "2026-01-01T00:00:01Z")).toHaveLength(2);
  expect(await texts("--since", "10m")).toEqual([]);
  expect(await texts("--limit", "1")).toEqual(["suspend: running -> suspending."]);
});

test("what is wrong is said, as text and as JSON", async () => {
  expect(await cli.hibernaut(["logs", "--since", "soon"])).toMatchObject({
    code: 2,
    stdout: "",
    stderr: expect.stringMatching(/^Error: `since` must be a time such as/),
  });
  expect(await cli.json(["logs", "-m", "nope", "-f"])).toMatchObject({ code: 1, document: { error: "not_found" } });
  expect(await cli.hibernaut(["logs", "--limit", "-1"])).toMatchObject({ code: 2 });
});

test("a follow shows lines as they come, and Ctrl-C ends it as it ends any program", async () => {
  const program = join(import.meta.dirname, "../bin/hibernaut.js");
  const child = spawn(process.execPath, [program, "logs", "--app", "shop", "-m", ids[0] ?? "", "--follow"], {
    stdio: ["ignore", "pipe", "inherit"],
    env: { PATH: process.env.PATH, HIBERNAUT_API_URL: cli.server.url, HIBERNAUT_API_TOKEN: cli.server.token },
  });
  let seen = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    seen += text;
  });
  await expect.poll(() => seen, { timeout: 10_000 }).toContain("suspending.");
  cli.server.machines.print(ids[0] ?? "", "live");
  await expect.poll(() => seen).toMatch(/stdout {3}live\n$/);
  const ended = once(child, "exit");
  child.kill("SIGINT");
  expect(await ended).toEqual([null, "SIGINT"]);
  await expect.poll(() => cli.server.machines.followers.size).toBe(0);
});

test("a follow ends when the machine is destroyed", async () => {
  const following = cli.hibernaut(["logs", "-m", ids[1] ?? "", "--follow"]);
  await expect.poll(() => cli.server.machines.followers.size, { timeout: 10_000 }).toBe(1);
  cli.server.machines.destroy("shop", ids[1] ?? "");
  expect(await following).toMatchObject({ code: 0 });
});
