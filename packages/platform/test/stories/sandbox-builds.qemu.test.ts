/** Templates that E2B's client builds, unchanged, on real QEMU. */
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type ConnectionOpts, type LogEntry, Sandbox, Template, waitForFile } from "e2b";
import { beforeAll, expect, test } from "vitest";
import { sandboxImage } from "../helpers/sandbox-image.ts";
import { Place } from "../helpers/served.ts";
import { tempFolder } from "../helpers/temp.ts";

const image = await sandboxImage();
const place = Place.forTests({ HIBERNAUT_SANDBOX_LISTEN: "127.0.0.1:0" });

/** A tenant with a key for sandboxes in an app of its own. */
async function tenant(app: string): Promise<ConnectionOpts> {
  await place.client.createApp(app);
  const { token: apiKey } = await place.client.createToken("agents", { apps: [app], e2b: true });
  return { apiKey, apiUrl: place.served.sandboxUrl, sandboxUrl: place.served.sandboxUrl, domain: "localhost" };
}

let agents: ConnectionOpts;
beforeAll(async () => {
  agents = await tenant("agents");
  await place.client.createTemplate("agents", { name: "base", from: { image, guest: { memory_mb: 256 } } });
});

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
    .runCmd("cat public/deep/page.html; echo $GREETING >made; id -un")
    .runCmd("id -un", { user: "root" })
    .setStartCmd("bin/run.sh", waitForFile("/tmp/said"));
  const heard: LogEntry[] = [];
  const built = await Template.build(template, "site", { ...agents, onBuildLogs: (entry) => heard.push(entry) });
  expect(built).toMatchObject({ name: "site", tags: ["default"] });
  expect(heard.map(({ message }) => message)).toEqual(expect.arrayContaining(["deeper", "user", "root"]));

  const sandbox = await Sandbox.create("site", agents);
  const { stdout } = await sandbox.commands.run("pwd; cat made /tmp/said; ls pages; echo $GREETING");
  expect(stdout).toBe("/srv/work\nhello\nstarted by user in /srv/work with hello\ndeep\nindex.html\nhello\n");
  expect(await sandbox.files.read("public/index.html")).toBe("hello");
  expect((await sandbox.files.list("/srv/work")).map(({ name, owner }) => [name, owner])).toEqual(
    expect.arrayContaining([
      ["public", "user"],
      ["pages", "root"],
    ]),
  );
  expect((await sandbox.commands.list()).map(({ tag }) => tag)).toEqual(["start"]);
  await sandbox.kill();
});
