import { once } from "node:events";
import type { LogEntry } from "@hibernaut/machines";
import { beforeAll, expect, test, vi } from "vitest";
import { useCli } from "./helpers.ts";

const cli = useCli();
let ids: string[];

/** What was printed, as the platform has it. */
let printed: LogEntry[];

beforeAll(async () => {
  const { machines } = cli.server.platform;
  ids = [await cli.run(), await cli.run()];
  await cli.server.print(ids[0] ?? "", "hello");
  await cli.server.print(ids[1] ?? "", "oh no", "stderr");
  machines.suspend("shop", ids[0] ?? "");
  await logged(/^captured: suspending -> suspended/);
  machines.start("shop", ids[0] ?? "");
  await logged(/^started: starting -> running/);
  printed = await entries();
});

/** Settles when the last line of all machines is this one. */
const logged = (line: RegExp) =>
  vi.waitFor(async () => expect((await entries()).at(-1)?.text).toMatch(line), { timeout: 10_000 });

/** The last lines of all machines. */
async function entries(): Promise<LogEntry[]> {
  const { signal } = new AbortController();
  return (await Array.fromAsync(cli.server.platform.logs.read("shop", { limit: 1000, signal }))).flat();
}

test("lines have time, machine, stream and text, without colours in a pipe", async () => {
  const lines = printed.map(
    ({ at, machine, stream, text }) => `${at} ${machine.slice(0, 6)} ${stream.padEnd(8)} ${text}\n`,
  );
  expect(await cli.hibernaut("logs")).toEqual({ code: 0, stderr: "", stdout: lines.join("") });
  expect(lines.filter((line) => !line.includes(" platform "))).toEqual([
    expect.stringMatching(new RegExp(`^\\S+Z ${ids[0]?.slice(0, 6)} stdout {3}hello\n$`)),
    expect.stringMatching(new RegExp(`^\\S+Z ${ids[1]?.slice(0, 6)} stderr {3}oh no\n$`)),
  ]);
});

test("lines are chosen by machine, stream, time and count", async () => {
  const texts = async (options: string) =>
    (await cli.hibernaut(`logs ${options} --json`)).stdout
      .split("\n")
      .filter((line) => line !== "")
      .map((line) => (JSON.parse(line) as { text: string }).text);
  const since = (at = "", ms = 0) => `--since ${new Date(Date.parse(at) + ms).toISOString()}`;
  const wanted = (choose: (entry: LogEntry) => boolean) => printed.filter(choose).map(({ text }) => text);
  const last = printed.at(-1);
  expect(await texts(`-a shop -m ${ids[1]}`)).toEqual(wanted(({ machine }) => machine === ids[1]));
  expect(await texts(`--machine ${ids[0]} -m ${ids[1]}`)).toHaveLength(printed.length);
  expect(await texts("--stream stdout --stream stderr")).toEqual(["hello", "oh no"]);
  expect(await texts(since(last?.at))).toEqual(wanted(({ at }) => at >= (last?.at ?? "")));
  expect(await texts(since(last?.at, 1))).toEqual([]);
  expect(await texts("--since 10m")).toHaveLength(printed.length);
  expect(await texts("--limit 1")).toEqual([last?.text]);
});

test("what is wrong is said, as text and as JSON", async () => {
  expect(await cli.hibernaut("logs --since soon")).toMatchObject({
    code: 2,
    stdout: "",
    stderr: expect.stringMatching(/^Error: `since` must be a time such as/),
  });
  expect(await cli.json("logs -m nope -f")).toMatchObject({ code: 1, document: { error: "not_found" } });
  expect(await cli.hibernaut("logs --limit -1")).toMatchObject({ code: 2 });
});

test("a follow shows lines as they come, and Ctrl-C ends it as it ends any program", async () => {
  const { child } = cli.begin(`logs --app shop -m ${ids[0]} --follow`);
  let seen = "";
  child.stdout.on("data", (text: string) => (seen += text));
  await expect.poll(() => seen, { timeout: 10_000 }).toContain(printed.at(-1)?.text);
  await cli.server.print(ids[0] ?? "", "live");
  await expect.poll(() => seen).toMatch(/stdout {3}live\n$/);
  const ended = once(child, "exit");
  child.kill("SIGINT");
  expect(await ended).toEqual([null, "SIGINT"]);
  await expect.poll(() => cli.server.open.logs).toBe(0);
});

test("a follow ends when the machine is destroyed", async () => {
  const following = cli.hibernaut(`logs -m ${ids[1]} --follow`);
  await expect.poll(() => cli.server.open.logs, { timeout: 10_000 }).toBe(1);
  cli.server.platform.machines.destroy("shop", ids[1] ?? "", { force: true });
  expect(await following).toMatchObject({ code: 0 });
});

test("times are those of the reader's zone, can be passed back, and stay UTC for programs", async () => {
  const zone = { TZ: "Asia/Kolkata" };
  const [first = ""] = (await cli.hibernaut("logs", zone)).stdout.split("\n");
  expect(first).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}\+05:30 /);
  expect(new Date(first.split(" ")[0] ?? "").toISOString()).toBe(printed[0]?.at);
  const events = await cli.hibernaut(`machine events ${ids[0]}`, zone);
  const [, at = ""] = /^(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d \+05:30) +started/m.exec(events.stdout) ?? [];
  const since = await cli.hibernaut(["logs", "--since", at, "--json"], zone);
  expect(since.stdout).toMatch(/^{"at":"[^"]+Z",.*"started: starting -> running/m);
  expect((await cli.hibernaut(`machine status ${ids[0]}`, zone)).stdout).toMatch(
    /^created +\d{4}-\d\d-\d\d \d\d:\d\d:\d\d \+05:30$/m,
  );
});
