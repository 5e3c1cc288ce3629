/** Whether QEMU can begin with a memory that it may only read is found out in a bounded time, whatever it does. */
import { chmod, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { tempFolder } from "../../../platform/test/helpers/temp.ts";
import { Jail } from "../../src/qemu/jail/jail.ts";
import { flawInBorrowing } from "../../src/qemu/jail/try-borrowing.ts";
import { FIRST_UID } from "./stand-in.ts";

const isRoot = process.getuid?.() === 0;
const NOWHERE = { read: [], write: [], devices: [], links: {} };

/** A launcher that does this. */
async function settingsWith(script: string) {
  const launcher = join(await tempFolder("try-borrowing"), "launcher");
  await writeFile(launcher, `#!/bin/sh\n${script}\n`);
  await chmod(launcher, 0o755);
  return { launcher, program: "/usr/bin/true", host: NOWHERE, firstUid: FIRST_UID };
}

test.skipIf(!isRoot)("a QEMU that hangs is not waited for, and neither is what holds its output open", async () => {
  const settings = await settingsWith("setsid sleep 5 & exec sleep 600");
  const began = performance.now();
  const found = await flawInBorrowing(settings, { timeoutMs: 300 });
  expect(found).toEqual({ flaw: expect.stringMatching(/took longer/), unsure: true });
  expect(performance.now() - began).toBeLessThan(4000);
});

test.skipIf(!isRoot)(
  "what the launcher says is known from then on, and what the host could not tell is tried again",
  async () => {
    const refusing = await settingsWith("echo refused >&2; exit 1");
    expect(await flawInBorrowing(refusing)).toEqual({ flaw: "refused" });
    const jail = new Jail(refusing);
    expect(await jail.flawInBorrowing()).toBe("refused");
    await writeFile(refusing.launcher, "#!/bin/sh\nexit 0\n");
    expect(await jail.flawInBorrowing()).toBe("refused");
  },
);
