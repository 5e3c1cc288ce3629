/** Commands in a machine: their exit codes, streams, limits and ends. */
import { text } from "node:stream/consumers";
import { beforeAll, expect, test } from "vitest";
import { Place } from "../helpers/served.ts";
import { shellImage } from "../helpers/shell-image.ts";

const place = Place.forTests();
let id: string;
beforeAll(async () => {
  const init = { cmd: ["-c", "exec sleep 3600"] };
  const machine = await place.machine({ image: await shellImage(), init, services: [], env: { COLOUR: "blue" } });
  id = machine.machine_id;
});

const exec = (command: string[], options = {}) => place.client.runExec(place.app, id, { command, ...options });

test("output, exit code, input, environment and working directory", async () => {
  const script = "cat; echo $COLOUR $EXTRA >&2; ls -d $PWD; exit 7";
  const options = { stdin: "from outside\n", env: { EXTRA: "red" }, workdir: "/usr" };
  expect(await exec(["sh", "-c", script], options)).toEqual({
    exit_code: 7,
    exit_signal: 0,
    stdout: "from outside\n/usr\n",
    stderr: "blue red\n",
    timed_out: false,
    truncated: false,
  });
});

test("a signal, a program that is not there, another user", async () => {
  expect(await exec(["sh", "-c", "kill -9 $$"])).toMatchObject({ exit_code: 137, exit_signal: 9 });
  expect(await exec(["no-such-program"])).toMatchObject({
    exit_code: 127,
    stderr: expect.stringMatching(/^no-such-program: .*No such file/),
  });
  expect((await exec(["id", "-u"], { user: "app" })).stdout).toBe("1000\n");
  expect(await exec(["id"], { user: "nobody-here" })).toMatchObject({ exit_code: 126 });
});

test("a command that hangs is killed with its whole group", { tags: "again" }, async () => {
  const hung = await exec(["sh", "-c", "sleep 1234 & sleep 1234"], { timeout: 1 });
  expect(hung).toMatchObject({ timed_out: true, exit_signal: 9, exit_code: 137 });
  const left = "for p in /proc/[0-9]*/cmdline; do head -c 100 $p; echo; done | cat -v";
  expect((await exec(["sh", "-c", left])).stdout).not.toMatch(/sleep.*1234/);
});

test("what a command leaves running does not hold it up", async () => {
  const began = performance.now();
  const { stdout } = await exec(["sh", "-c", "sleep 30 & echo done"]);
  expect(stdout).toBe("done\n");
  expect(performance.now() - began).toBeLessThan(20_000);
});

test("output over the limit is cut and said to be", async () => {
  const { stdout, truncated, exit_code: code } = await exec(["sh", "-c", "yes 0123456789abcde | head -c 3000000"]);
  expect({ size: stdout.length, truncated, code }).toEqual({ size: 1024 * 1024, truncated: true, code: 0 });
});

test("a stream carries megabytes both ways, whole, although the machine sleeps in between", {
  tags: "again",
}, async () => {
  const size = 4 * 1024 * 1024;
  const session = await place.client.openExec(place.app, id, {
    command: ["node", "-e", "process.stdin.pipe(process.stdout)"],
    stdin: true,
  });
  const sent = Buffer.alloc(size, "0123456789abcdef\n");
  session.stdin.write(sent.subarray(0, size / 2));
  await place.suspend(id);
  await place.start(id);
  session.stdin.end(sent.subarray(size / 2));
  const [back, , exit] = await Promise.all([text(session.stdout), text(session.stderr), session.exit]);
  expect(exit).toMatchObject({ exit_code: 0, error: null });
  expect(back.length).toBe(size);
  expect(Buffer.from(back).equals(sent)).toBe(true);
});

test("a terminal has a size, follows it, and Ctrl-C is a key", async () => {
  const session = await place.client.openExec(place.app, id, {
    command: ["sh", "-c", "tty; stty size; trap 'stty size; exit 5' INT; echo ready; while :; do sleep 1; done"],
    tty: true,
    rows: 30,
    columns: 100,
  });
  let seen = "";
  session.stdout.setEncoding("utf8").on("data", (chunk: string) => {
    seen += chunk;
  });
  session.stderr.resume();
  await expect.poll(() => seen, { timeout: 20_000 }).toContain("ready");
  expect(seen).toMatch(/^\/dev\/pts\/\d+\r\n30 100\r\n/);
  session.resize(50, 120);
  session.stdin.write("\u0003");
  expect(await session.exit).toMatchObject({ exit_code: 5 });
  expect(seen).toContain("50 120");
});

test("a client that goes away ends its command", async () => {
  const session = await place.client.openExec(place.app, id, { command: ["sleep", "4321"], stdin: true });
  session.kill();
  const left = () => exec(["sh", "-c", "cat /proc/[0-9]*/cmdline | cat -v"]);
  await expect.poll(async () => (await left()).stdout, { timeout: 20_000 }).not.toContain("4321");
});

test("refusals: a machine that sleeps, a machine that is not there, a command that is too long", {
  tags: "again",
}, async () => {
  await expect(exec(["x".repeat(32_000), "y".repeat(32_000), "z".repeat(32_000)])).rejects.toMatchObject({
    code: "invalid_argument",
  });
  await expect(place.client.openExec(place.app, "00000000000000", { command: ["ls"] })).rejects.toMatchObject({
    code: "not_found",
    status: 404,
  });
  await place.suspend(id);
  await expect(exec(["ls"])).rejects.toMatchObject({ code: "failed_precondition" });
  await expect(place.client.openExec(place.app, id, { command: ["ls"] })).rejects.toMatchObject({ status: 412 });
  await place.start(id);
});

test("a guest whose kernel crashes starts again, and its history says what the kernel said", {
  tags: "again",
}, async () => {
  await exec(["sh", "-c", "echo c > /proc/sysrq-trigger"]).catch(() => {}); // it ends with its machine
  await expect.poll(async () => (await place.get(id)).last_boot?.reason, { timeout: 60_000 }).toBe("vmm_lost");
  const events = await place.client.listMachineEvents(place.app, id);
  expect(events.find(({ type }) => type === "lost_restarts")?.details).toMatchObject({
    reason: expect.stringMatching(/kernel has crashed.*Kernel panic - not syncing/),
  });
});
