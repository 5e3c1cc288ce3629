/** A program in a jail that works for the platform ends with it; QEMU, which is started without that word, does not. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync } from "node:fs";
import { mkdir } from "node:fs/promises";
import { getPriority } from "node:os";
import { join } from "node:path";
import type { Readable } from "node:stream";
import { JAIL_LAUNCHER } from "@hibernaut/settings/places";
import { expect, onTestFinished, test } from "vitest";
import { tempFolder } from "../../../platform/test/helpers/temp.ts";
import { launcherArguments } from "../../src/qemu/jail/arguments.ts";
import { hostPlaces } from "../../src/qemu/jail/host-places.ts";
import { MACHINE_NICE } from "../../src/qemu/jail/limits.ts";

/** What a process runs. Empty when it has ended, whether someone has noticed or not. */
function commandOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, "utf8").replaceAll("\0", " ");
  } catch {
    return "";
  }
}

/** As far as machines come behind the platform when the CPUs are busy. */
const BEHIND = MACHINE_NICE;

test.each([
  ["with --end-with-parent", true],
  ["without", false],
])("a program in a jail, %s, when the process that started the launcher is killed", async (_, endWithParent) => {
  const root = join(await tempFolder("jail"), "root");
  await mkdir(root);
  const uid = process.getuid?.() === 0 ? { uid: 1_900_000_000 } : {};
  const places = await hostPlaces("/usr/bin/sleep");
  const plan = {
    program: "/usr/bin/sleep",
    root,
    ...uid,
    groups: [],
    ownNetwork: true,
    endWithParent,
    places,
    nice: BEHIND,
    limits: {},
  };
  // A shell that stays, in the place of the platform, which starts machines in sessions of their own.
  const words = ["setsid", JAIL_LAUNCHER, ...launcherArguments(plan), "600"];
  const parent = spawn("sh", ["-c", '"$@"; true', "sh", ...words], {
    stdio: ["ignore", "ignore", "inherit", "ignore", "pipe"],
  });
  const [said] = (await once(parent.stdio[4] as Readable, "data")) as [Buffer];
  const pid = Number(/^pid (\d+)$/m.exec(String(said))?.[1]);
  onTestFinished(() => {
    if (commandOf(pid) !== "") process.kill(pid, "SIGKILL");
  });
  await expect.poll(() => commandOf(pid)).toContain("/usr/bin/sleep 600");
  // The launcher's own arguments end with those of the program, so it may not have become the program yet.
  await expect.poll(() => getPriority(pid)).toBe(getPriority() + BEHIND);
  // Not every kernel shares CPUs among sessions.
  if (existsSync("/proc/self/autogroup"))
    expect(readFileSync(`/proc/${pid}/autogroup`, "utf8")).toMatch(new RegExp(` nice ${BEHIND}$`, "m"));
  parent.kill("SIGKILL");
  await once(parent, "exit");
  if (endWithParent) await expect.poll(() => commandOf(pid)).toBe("");
  else expect(commandOf(pid)).toContain("/usr/bin/sleep 600");
});
