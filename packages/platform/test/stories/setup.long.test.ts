/** The two commands of the README, and `hibernaut` on the PATH, on a machine that has nothing but Node, npm and git. */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { BareSystem, must, REPOSITORY } from "../helpers/bare-system.ts";
import { tempFolder } from "../helpers/temp.ts";

const OPERATE = join(import.meta.dirname, "../../../../docs/operate.md");
/** A bare system takes two minutes, what it lacks two more; the machine runs under emulation. */
const LIMIT_MS = 30 * 60_000;
const RELEASES = [
  ["bookworm", "v18."],
  ["trixie", "v20."],
] as const;

test.skipIf(process.getuid?.() !== 0).each(RELEASES)(
  "Debian %s with its own Node (%s)",
  { timeout: LIMIT_MS },
  async (release, node) => {
    const system = await BareSystem.make(release, await tempFolder("bare"));
    const run = async (line: string, options?: { offline: boolean }) =>
      must(await system.run(`cd ${REPOSITORY} && ${line}`, options));
    expect((await run("node --version")).out).toContain(node);

    expect((await run("npm run setup")).err).toMatch(/This host is ready \(/);
    expect((await run("npm run setup -- --link")).err).toMatch(
      /This host is ready; there was nothing to do\.\nOn the PATH: \/usr\/local\/bin\/hibernaut and \/usr\/local\/bin\/hib\./,
    );

    expect((await run("npx hibernaut --version")).out).toBe((await run("cd / && hibernaut --version")).out);

    // Nothing more is needed from the network, and the bridge that it makes goes with its own.
    const { out } = await run("ip link set lo up && npm run --silent up -- --exit --json", { offline: true });
    const tour = JSON.parse(out.trim().split("\n").at(-1) ?? "") as Record<string, unknown>;
    expect(tour).toMatchObject({ resumed: true, requests: [expect.any(Number), expect.any(Number)] });

    const doctor = await run("cd / && hibernaut doctor", { offline: true });
    const kernel = await run("cat packages/guest/.build/bundle/bundle.json");
    console.log(release, tour, doctor.out, kernel.out);
    // What the documents say about a user for the service, where nobody has made a group kvm.
    const lines = (await readFile(OPERATE, "utf8")).match(/(?<=^ {4})(groupadd|useradd) .*$/gm) ?? [];
    expect(lines).toHaveLength(2);
    expect((await run(`${lines.join(" && ")} && id -nG hibernaut`)).out).toMatch(/\bkvm\b/);

    // The test runner has compiled parts that npm leaves out under an old Node.
    expect((await run("npm test -- lib/whole-files")).out).toMatch(/^\d+ passed, 0 failed$/m);

    expect((await run("hibernaut uninstall --data --yes", { offline: true })).out).toMatch(
      /Deleted \S+ Removed from the PATH/,
    );
    expect((await system.run("command -v hibernaut")).code).not.toBe(0);
  },
);
