/**
 * Templates that E2B's client builds, unchanged, on real QEMU.
 *
 * @module-tag again
 */
import { randomBytes } from "node:crypto";
import { mkdir, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type ConnectionOpts, type LogEntry, Sandbox, Template, waitForFile } from "e2b";
import { beforeAll, expect, test } from "vitest";
import { control, sandboxTemplate, tenant, WITH_SANDBOXES } from "../helpers/e2b.ts";
import { sandboxImage } from "../helpers/sandbox-image.ts";
import { Place } from "../helpers/served.ts";
import { tempFolder } from "../helpers/temp.ts";

const image = await sandboxImage();
const place = Place.forTests(WITH_SANDBOXES);

let agents: ConnectionOpts;
beforeAll(async () => {
  agents = await tenant(place, "agents");
  await sandboxTemplate(place, "agents");
});

type BuiltTemplate = Parameters<typeof Template.build>[0];

/** Larger than any body of the API, in bytes. */
const LARGE = 3 * 1024 * 1024;

/** What a client copies from. */
async function contextFolder(): Promise<string> {
  const context = await tempFolder("context");
  await mkdir(join(context, "site/deep"), { recursive: true });
  await writeFile(join(context, "site/index.html"), "hello");
  await writeFile(join(context, "site/deep/page.html"), "deeper\n");
  await writeFile(
    join(context, "run.sh"),
    "echo started by $(id -un) in $PWD with $GREETING >/tmp/said; exec sleep infinity",
  );
  await symlink("../index.html", join(context, "site/deep/link.html"));
  await writeFile(join(context, "large"), randomBytes(LARGE));
  return context;
}

test("a template is built of files, commands, variables and a program, and every sandbox has them", async () => {
  const template = Template({ fileContextPath: await contextFolder() })
    .fromBaseImage()
    .setEnvs({ GREETING: "hello" })
    .setWorkdir("/srv/work")
    .copy("site", "public")
    .copy("run.sh", "bin/", { mode: 0o755 })
    .copy("site/**/*.html", "pages", { user: "root" })
    .copy("large", "renamed")
    .runCmd("cat public/deep/page.html; echo $GREETING >made; id -un")
    .runCmd("id -un", { user: "root" })
    .setStartCmd("bin/run.sh", waitForFile("/tmp/said"));
  const heard: LogEntry[] = [];
  const built = await Template.build(template, "site", { ...agents, onBuildLogs: (entry) => heard.push(entry) });
  expect(built).toMatchObject({ name: "site", tags: ["default"] });
  expect(heard.map(({ message }) => message)).toEqual(expect.arrayContaining(["deeper", "user", "root"]));

  const sandbox = await Sandbox.create("site", agents);
  const { stdout } = await sandbox.commands.run(
    "pwd; cat made /tmp/said public/deep/link.html; ls pages; echo $GREETING",
  );
  expect(stdout).toBe("/srv/work\nhello\nstarted by user in /srv/work with hello\nhellodeep\nindex.html\nhello\n");
  expect(await sandbox.files.read("public/index.html")).toBe("hello");
  const owners = (await sandbox.files.list("/srv/work")).map(({ name, owner, size }) => [name, owner, size]);
  expect(owners).toEqual(
    expect.arrayContaining([
      ["public", "user", expect.any(Number)],
      ["pages", "root", expect.any(Number)],
      ["renamed", "user", LARGE],
    ]),
  );
  expect((await sandbox.commands.list()).map(({ tag }) => tag)).toEqual(["start"]);
  const [fork] = await sandbox.fork();
  if (!(fork instanceof Sandbox)) throw new Error("there is no fork");
  expect((await fork.commands.run("pwd; echo $GREETING")).stdout).toBe("/srv/work\nhello\n");
  await Promise.all([sandbox.kill(), fork.kill()]);

  // What waits in a pool has the program, too.
  const id = (await builtTemplates())[0]?.id ?? "";
  await place.client.setTemplatePool("agents", id, 1);
  const ready = async () => (await place.client.getTemplate("agents", id)).pool.ready;
  await expect.poll(ready, { timeout: 60_000 }).toBe(1);
  const taken = await Sandbox.create("site", agents);
  expect((await taken.commands.list()).map(({ tag }) => tag)).toEqual(["start"]);
  await place.client.setTemplatePool("agents", id, 0);
  await taken.kill();
});

test("a build that fails says in which step and why, and leaves no template and no machine", {
  tags: "again",
}, async () => {
  const build = (template: BuiltTemplate, name = "broken") => Template.build(template, name, agents);
  const base = () => Template().fromTemplate("base");
  const failing = base().runCmd("echo fine").runCmd("echo before; echo too bad >&2; exit 7");
  await expect(build(failing)).rejects.toThrow(/failed: exit status 7 \(too bad\)/);
  await expect(build(base().runCmd("id", { user: "nobody-here" }))).rejects.toThrow(
    /user 'nobody-here' does not exist/,
  );
  await expect(build(base().setStartCmd("echo no >&2; exit 3", "false"))).rejects.toThrow(/start command failed/);
  await expect(build(Template().fromTemplate("unknown"))).rejects.toThrow(/no template 'unknown'/);
  await expect(build(Template().fromImage("oci:/nowhere/at/all:latest"))).rejects.toThrow(/nowhere/);

  const begun = await Template.buildInBackground(failing, "broken", agents);
  await expect
    .poll(async () => (await Template.getBuildStatus(begun, agents)).status, { timeout: 60_000 })
    .toBe("error");
  const status = await Template.getBuildStatus(begun, { ...agents, logsOffset: 1 });
  expect(status.reason).toMatchObject({ step: "2", message: expect.stringContaining("exit status 7") as string });
  expect(status.reason?.logEntries.map(({ level, message }) => [level, message])).toEqual([
    ["info", "[2/2] RUN echo before; echo too bad >&2; exit 7"],
    ["info", "before"],
    ["warn", "too bad"],
    ["error", expect.stringContaining("exit status 7")],
  ]);
  expect(status.logEntries[0]?.message).toBe("[1/2] RUN echo fine");
  expect(await Template.exists("broken", agents)).toBe(false);
  await expect.poll(temporary, { timeout: 60_000 }).toEqual([]);
});

test("names and tags lead to what was built last, and what nothing leads to is deleted", {
  tags: "again",
}, async () => {
  const build = (said: string, name: string) =>
    Template.build(Template().fromTemplate("base").runCmd(`echo ${said} >said`), name, agents);
  const says = async (name: string) => {
    const sandbox = await Sandbox.create(name, agents);
    const said = await sandbox.files.read("said");
    await sandbox.kill();
    return said.trim();
  };
  const first = await build("one", "tagged:v1");
  expect(await Template.exists("tagged", agents)).toBe(true);
  await expect(Sandbox.create("tagged", agents)).rejects.toThrow(/404/);
  expect(await Template.assignTags("tagged:v1", ["default", "stable"], agents)).toMatchObject({
    buildId: first.buildId,
  });
  await build("two", "tagged");
  expect([await says("tagged"), await says("tagged:stable")]).toEqual(["two", "one"]);
  expect((await Template.getTags("tagged", agents)).map(({ tag }) => tag)).toEqual(["default", "stable", "v1"]);
  const before = await builtTemplates("tagged");
  expect(before).toHaveLength(2);
  await Template.removeTags("tagged", ["v1", "stable"], agents);
  expect(await builtTemplates("tagged")).toEqual([before[1]]);
  await build("three", "tagged");
  await expect.poll(() => builtTemplates("tagged"), { timeout: 20_000 }).toHaveLength(1);
  expect(await says("tagged")).toBe("three");
  await expect(Template.assignTags("tagged", ":wrong", agents)).rejects.toThrow(/cannot be a tag/);
  await expect(Template.getTags("nothing", agents)).rejects.toThrow(/404/);
});

test("a template begins from an image, as large as its client wants, and another from that", {
  tags: "again",
}, async () => {
  const own = Template().fromImage(image).setUser("root").setEnvs({ FROM: "image" }).runCmd("pwd >/where");
  await Template.build(own, "own", { ...agents, cpuCount: 1, memoryMB: 192 });
  await Template.build(Template().fromTemplate("own").runCmd("echo $FROM >/from").setUser("user"), "next", agents);
  const sandbox = await Sandbox.create("next", agents);
  expect(await sandbox.getInfo()).toMatchObject({ memoryMB: 192, cpuCount: 1 });
  expect((await sandbox.commands.run("cat /from /where; id -un; pwd; echo $FROM")).stdout).toBe(
    "image\n/home/user\nuser\n/home/user\nimage\n",
  );
  await sandbox.kill();

  const lines = [
    "FROM e2bdev/base",
    "ENV A=1 B=2",
    "ENV PATH=/opt/$A:$PATH",
    "WORKDIR /work",
    "COPY site/ ./",
    "RUN echo $A$B >made; id -un >>made",
  ];
  const described = Template({ fileContextPath: await contextFolder() }).fromDockerfile(lines.join("\n"));
  await Template.build(described, "described", { ...agents, memoryMB: 320 });
  const other = await Sandbox.create("described", agents);
  expect(await other.getInfo()).toMatchObject({ memoryMB: 320 });
  expect((await other.commands.run("cat made index.html; echo; id -un; echo $PATH")).stdout).toMatch(
    /^12\nroot\nhello\nuser\n\/opt\/1:.*\/usr\/bin/,
  );
  await other.kill();
});

test("two tenants see nothing of each other's builds, files and templates", { tags: "again" }, async () => {
  const rivals = await tenant(place, "rivals");
  const template = Template({ fileContextPath: await contextFolder() })
    .fromTemplate("base")
    .copy("run.sh", "/run.sh");
  const mine = await Template.build(template, "mine", agents);
  await expect(Template.getBuildStatus(mine, rivals)).rejects.toThrow(/404/);
  expect(await Template.exists("mine", rivals)).toBe(false);
  await expect(Template.assignTags("mine", "theirs", rivals)).rejects.toThrow(/404/);
  await expect(Template.removeTags("mine", "default", rivals)).rejects.toThrow(/404/);
  await expect(Sandbox.create("mine", rivals)).rejects.toThrow(/404/);
  await expect(Template.build(Template().fromTemplate("mine"), "stolen", rivals)).rejects.toThrow(/no template 'mine'/);

  const { filesHash: hash } = JSON.parse(await Template.toJSON(template)).steps[0] as { filesHash: string };
  expect(await answered(agents, "GET", `/templates/mine/files/${hash}`)).toMatchObject({ present: true });
  await expect(answered(rivals, "GET", `/templates/mine/files/${hash}`)).rejects.toThrow("404");
  await answered(rivals, "POST", "/v3/templates", { name: "theirs" });
  const link = await answered(rivals, "GET", `/templates/theirs/files/${hash}`);
  expect(link).toMatchObject({ present: false });
  const url = String(link["url"]);
  expect(url).not.toContain(String(rivals.apiKey));
  const forged = `${url.slice(0, -2)}${url.at(-2) === "A" ? "B" : "A"}${url.at(-1)}`;
  expect((await fetch(forged, { method: "PUT", body: "x" })).status).toBe(403);
  expect((await fetch(url, { method: "PUT", body: "not an archive" })).status).toBe(200);
  // One that is not an archive is noticed when it is used, and does not replace the other tenant's.
  expect(await answered(agents, "GET", `/templates/mine/files/${hash}`)).toMatchObject({ present: true });
  await Template.build(template.skipCache(), "mine", agents);

  for (const [path, body] of [
    ["/v3/templates", { name: "x y" }],
    ["/v3/templates", { name: "a", memoryMB: 1 }],
    ["/templates/tags", { target: "mine", tags: [] }],
    [`/v2/templates/mine/builds/${mine.buildId}x`, { steps: [] }],
    ["/v3/templates", []],
  ] as const)
    await expect(answered(agents, "POST", path, body)).rejects.toThrow(/40[04]/);
  await expect(answered(agents, "POST", `/v2/templates/mine/builds/${mine.buildId}`, {})).rejects.toThrow("409");
});

async function endDuringBuild(end: "kill" | "stop"): Promise<void> {
  const slow = Template().fromTemplate("base").runCmd("echo begun; sleep 600");
  const begun = await Template.buildInBackground(slow, "slow", agents);
  const said = async () => (await Template.getBuildStatus(begun, agents)).logEntries.map(({ message }) => message);
  await expect.poll(said, { timeout: 60_000 }).toContain("begun");
  expect(await temporary()).toHaveLength(1);
  await place.served[end]();
  await place.served.start();
  const { status, reason } = await Template.getBuildStatus(begun, agents);
  expect({ status, message: reason?.message }).toEqual({
    status: "error",
    message: "The platform ended while the template was being built. Build it again.",
  });
  // One that ends in order destroys it itself.
  if (end === "stop") expect(await temporary()).toEqual([]);
  await expect.poll(temporary, { timeout: 60_000 }).toEqual([]);
  await Template.build(Template().fromTemplate("base").runCmd("true"), "slow", agents);
}

test("a platform that is killed in the middle of a build leaves an error, and no machine", { tags: "again" }, () =>
  endDuringBuild("kill"),
);

test("so does one that stops in the middle of a build", { tags: "again" }, () => endDuringBuild("stop"));

/** Machines that are neither sandboxes nor destroyed: those of builds. */
async function temporary(): Promise<string[]> {
  const machines = await place.client.listMachines("agents");
  return machines.filter(({ cordoned, state }) => cordoned && state !== "destroyed").map(({ id }) => id);
}

async function builtTemplates(name = "site") {
  const all = await place.client.listTemplates("agents");
  return all.filter((one) => one.name.startsWith(`${name}-`));
}

/** Rejects with the status unless it is one of success. */
async function answered(who: ConnectionOpts, method: string, path: string, body?: object) {
  const response = await control(who, method, path, body);
  if (!response.ok) throw new Error(`${response.status}: ${await response.text()}`);
  return (await response.json()) as Record<string, unknown>;
}
