/**
 * A machine as a program uses it through the client library: commands, files, pauses and forks, without E2B's dialect.
 *
 * @module-tag again
 */
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { ApiError, type MachineHandle } from "@hibernaut/client";
import { beforeAll, expect, test } from "vitest";
import { sandboxImage } from "../helpers/sandbox-image.ts";
import { Place } from "../helpers/served.ts";
import { tempFolder } from "../helpers/temp.ts";

const image = await sandboxImage();
const place = Place.forTests();
let machine: MachineHandle;
beforeAll(async () => {
  const made = await place.client.createMachine(place.app, { config: { image, guest: { memory_mb: 256 } } });
  machine = place.client.machine(place.app, made.id);
  await machine.ready();
});

test("commands say how they ended, and what they print is bounded", async () => {
  const input = { stdin: "from the input", env: { WHO: "me" }, workdir: "/tmp" };
  expect(await machine.commands.run("read -r x; echo $WHO $x in $PWD; echo oh >&2; exit 3", input)).toMatchObject({
    exit_code: 3,
    stdout: "me from the input in /tmp\n",
    stderr: "oh\n",
    timed_out: false,
    truncated: false,
  });
  const loud = await machine.commands.run("printf 'aä%.0s' 1 2 3", { maxOutputBytes: 5 });
  expect(loud).toMatchObject({ stdout: "aäa", stderr: "", truncated: true });
  expect(await machine.commands.run(["sleep", "60"], { timeout: 1 })).toMatchObject({ timed_out: true });
  const stopped = new AbortController();
  const running = machine.commands.run("echo $$ > /tmp/pid; exec sleep 600", { signal: stopped.signal });
  await expect.poll(() => machine.files.stat("/tmp/pid"), { timeout: 20_000 }).toBeDefined();
  stopped.abort(new Error("changed my mind"));
  await expect(running).rejects.toThrow("changed my mind");
  const alive = "kill -0 $(cat /tmp/pid)";
  await expect.poll(async () => (await machine.commands.run(alive)).exit_code, { timeout: 20_000 }).not.toBe(0);
});

test("files are written whole, with their directories, read, listed and removed", async () => {
  await machine.files.write("/srv/a/b/job.sh", "echo one\n");
  expect(await machine.files.readText("/srv/a/b/job.sh")).toBe("echo one\n");
  const bytes = Buffer.from(Array.from({ length: 300_000 }, (_, index) => index % 251));
  await machine.files.write("/srv/a/bytes", bytes);
  expect((await machine.files.read("/srv/a/bytes")).equals(bytes)).toBe(true);
  expect(await machine.files.readBeginning("/srv/a/bytes", 10)).toEqual({
    content: bytes.subarray(0, 10),
    size_bytes: 300_000,
    truncated: true,
  });
  expect(await machine.files.makeDir("/srv/a/new/dir")).toBe(true);
  expect(await machine.files.makeDir("/srv/a/new/dir")).toBe(false);
  const { entries, truncated } = await machine.files.list("/srv/a", { depth: 2 });
  expect(truncated).toBe(false);
  expect(entries.map(({ path, kind }) => `${kind} ${path}`)).toEqual([
    "directory /srv/a/b",
    "file /srv/a/b/job.sh",
    "file /srv/a/bytes",
    "directory /srv/a/new",
    "directory /srv/a/new/dir",
  ]);
  await machine.files.remove("/srv/a");
  expect(await machine.files.stat("/srv/a")).toBeUndefined();
});

test("directories go in and come back, also into a machine that sleeps", async () => {
  const here = await tempFolder("verbs");
  await mkdir(join(here, "site/deep"), { recursive: true });
  await writeFile(join(here, "site/deep/page.html"), "hello");
  await machine.pause();
  expect(await machine.files.upload(join(here, "site"), "/srv")).toMatchObject({ target: "/srv/site" });
  expect(await machine.files.readText("/srv/site/deep/page.html")).toBe("hello");
  const { target } = await machine.files.download("/srv/site/.", here);
  expect(target).toBe(here);
  expect(await readFile(join(here, "deep/page.html"), "utf8")).toBe("hello");
});

test("what cannot be done is refused with a reason", async () => {
  const refused = async (work: Promise<unknown>) =>
    work.then(
      () => "done",
      (error: unknown) => (error instanceof ApiError ? error.code : String(error)),
    );
  expect(await refused(machine.files.read("/no/such"))).toBe("not_found");
  expect(await refused(machine.files.read("/etc"))).toBe("invalid_argument");
  expect(await refused(machine.files.write("/etc", "x"))).toBe("invalid_argument");
  expect(await refused(machine.files.write("/etc/passwd/x", "x"))).toBe("invalid_argument");
  expect(await refused(machine.files.list("/etc/passwd"))).toBe("invalid_argument");
  expect(await refused(machine.files.list("etc"))).toBe("invalid_argument");
  expect(await refused(machine.files.remove("/"))).toBe("invalid_argument");
  expect(await refused(machine.files.read("/dev/zero"))).toBe("invalid_argument");
});

test("a paused machine is woken by what is asked of it, and a fork goes its own way", async () => {
  await machine.files.write("/tmp/state", "so far");
  await machine.pause();
  expect((await machine.get()).state).toBe("suspended");
  expect(await machine.files.readText("/tmp/state")).toBe("so far");
  const [fork] = await machine.fork();
  await fork?.files.write("/tmp/state", "another");
  expect(await machine.files.readText("/tmp/state")).toBe("so far");
  await fork?.destroy();
});
