/**
 * Sandboxes by the CLI's words, and what the API's other words mean for them.
 *
 * @module-tag again
 */
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { beforeAll, expect, test } from "vitest";
import { runCli } from "../../../cli/test/real-cli.ts";
import { sandboxTemplate, WITH_SANDBOXES } from "../helpers/e2b.ts";
import { sandboxImage } from "../helpers/sandbox-image.ts";
import { Place } from "../helpers/served.ts";
import { tempFolder } from "../helpers/temp.ts";

const image = await sandboxImage();
const place = Place.forTests(WITH_SANDBOXES);
const sandbox = (...words: string[]) => runCli(place, ["sandbox", ...words]);
beforeAll(() => sandboxTemplate(place));

test("a sandbox is made, used, paused, forked and destroyed with words of its own", async () => {
  const made = await sandbox("create", "--name", "desk", "--timeout", "10m", "--on-timeout", "pause", "-l", "task=17");
  expect(made).toMatchObject({ code: 0, err: expect.not.stringContaining("Error") });
  expect(made.out).toMatch(/^Machine [0-9a-f]{14} \(desk\) is running\. It is paused at 20/);
  const folder = await tempFolder("sandbox-words");
  await writeFile(join(folder, "in.txt"), "from here");
  expect(await sandbox("cp", join(folder, "in.txt"), "desk:/tmp/in.txt")).toMatchObject({ code: 0 });
  expect(
    await sandbox("exec", "desk", "--", "sh", "-c", "cat /tmp/in.txt; echo more >> /tmp/in.txt; exit 3"),
  ).toMatchObject({ code: 3, out: "from here" });
  expect(await sandbox("pause", "desk")).toMatchObject({ code: 0, out: expect.stringMatching(/is suspended\.$/m) });
  const { out: forked } = await sandbox("fork", "desk", "--name", "other", "--json");
  const [other] = JSON.parse(forked) as [{ id: string; sandbox: object }];
  expect(other.sandbox).toMatchObject({ template: "base", on_timeout: "pause", metadata: { task: "17" } });
  expect(await sandbox("cp", "other:/tmp/in.txt", join(folder, "out.txt"))).toMatchObject({ code: 0 });
  expect(await readFile(join(folder, "out.txt"), "utf8")).toBe("from heremore\n");
  const { out: listed } = await sandbox("ls");
  expect(listed.split("\n").map((line) => line.trim().split(/ {2,}/).slice(1, 4))).toEqual([
    ["NAME", "STATE", "TEMPLATE"],
    ["desk", "suspended", "base"],
    ["other", "running", "base"],
    [],
  ]);
  expect((await runCli(place, ["machine", "status", "desk"])).out).toMatch(
    /^sandbox +from template base, paused at 20.*, task=17$/m,
  );
  expect(await sandbox("kill", "desk", "other")).toMatchObject({ code: 0 });
  expect((await sandbox("ls")).out).toBe("App shop has no sandboxes.\n");
});

test("a sandbox gets a volume that is there, and none that is not", async () => {
  const refused = await sandbox("create", "--volume", "notes:/mnt/notes");
  expect(refused).toMatchObject({ code: expect.any(Number), err: expect.stringContaining("no volume 'notes'") });
  await place.client.createVolume(place.app, { name: "notes" });
  expect(await sandbox("create", "--name", "writer", "--volume", "notes:/mnt/notes")).toMatchObject({ code: 0 });
  const written = await sandbox(
    "exec",
    "writer",
    "--",
    "sh",
    "-c",
    "id -un; echo kept > /mnt/notes/a; cat /mnt/notes/a",
  );
  expect(written).toMatchObject({ code: 0, out: expect.stringMatching(/kept\n$/) });
  expect(await sandbox("kill", "writer")).toMatchObject({ code: 0 });
});

test("what the API pauses is kept past its time, and has its time again when the API starts it", {
  tags: "again",
}, async () => {
  const short = await place.client.createSandbox(place.app, { timeout_s: 5 });
  await short.pause();
  const { ends_at: before } = (await short.get()).sandbox ?? { ends_at: "" };
  await expect.poll(() => new Date().toISOString() > before, { timeout: 20_000 }).toBe(true);
  expect((await short.get()).state).toBe("suspended");
  await short.resume();
  const { ends_at: after } = (await short.get()).sandbox ?? { ends_at: "" };
  expect(after > before).toBe(true);
  await expect.poll(async () => (await short.get()).state, { timeout: 30_000 }).toBe("destroyed");
});

test("a fork of a sandbox ends as one, and what cannot be a sandbox is refused", async () => {
  const parent = await place.client.createSandbox(place.app, { timeout_s: 4 });
  const [fork] = await parent.fork();
  expect((await fork?.get())?.sandbox).toMatchObject({ timeout_s: 4, on_timeout: "kill" });
  const left = async () => (await place.client.listMachines(place.app)).length;
  await expect.poll(left, { timeout: 30_000 }).toBe(0);

  const make = (body: object) => place.client.createMachine(place.app, body);
  const refused = expect.objectContaining({ status: 400 });
  await expect(make({ template: "base", sandbox: { timeout_s: 86_401 } })).rejects.toEqual(refused);
  await expect(make({ template: "base", sandbox: { auto_resume: true } })).rejects.toEqual(refused);
  await expect(make({ template: "base", sandbox: { metadata: { a: "x".repeat(5000) } } })).rejects.toEqual(refused);
  await expect(make({ config: { image }, sandbox: {} })).rejects.toEqual(refused);
  await expect(make({ template: "none", sandbox: {} })).rejects.toMatchObject({ code: "not_found" });
});
