/** Any process can have the arguments of a machine's QEMU. Only one of the right user, that runs a QEMU, is taken for it. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { chmod, chown, copyFile, mkdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { beforeEach, expect, onTestFinished, test } from "vitest";
import { NOBODY } from "../../platform/test/helpers/nobody.ts";
import { tempFolder } from "../../platform/test/helpers/temp.ts";
import { findProcesses, hasThread } from "../src/qemu/find-processes.ts";

const MACHINE = "0123456789abcd";
const isRoot = process.getuid?.() === 0;

let folder: string;
let program: string;
const roots = () => ({ runRoot: join(folder, "run"), machineRoot: join(folder, "machines"), program });

beforeEach(async () => {
  folder = await tempFolder("strangers");
  await chmod(folder, 0o755);
  program = join(folder, "qemu-system-x86_64");
  await copyFile("/bin/bash", program);
  await mkdir(join(folder, "run", MACHINE), { recursive: true });
});

/** Starts a program with the arguments of the machine's QEMU, which waits until it is killed. Returns its pid. */
async function pose(executable: string, uid?: number): Promise<number> {
  const memory = `memory-backend-file,id=ram,mem-path=${roots().machineRoot}/${MACHINE}/memory,share=on`;
  const args = [
    "-c",
    "echo; kill -STOP $$",
    "bash",
    "-name",
    `hibernaut-${MACHINE},debug-threads=off`,
    "-object",
    memory,
  ];
  const child = spawn(executable, args, {
    cwd: "/",
    stdio: ["ignore", "pipe", "ignore"],
    ...(uid && { uid, gid: uid }),
  });
  onTestFinished(async () => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    child.kill("SIGKILL");
    await once(child, "exit");
  });
  await once(child.stdout, "data");
  return child.pid ?? 0;
}

test.runIf(isRoot)("a process of another user belongs to no machine, and is neither adopted nor ended", async () => {
  await pose(program, NOBODY);
  const own = await pose(program);
  expect((await findProcesses(roots())).map(({ pid }) => pid)).toEqual([own]);
});

test.runIf(isRoot)("the machine's own user is that of its directory of sockets", async () => {
  await chown(join(folder, "run", MACHINE), NOBODY, NOBODY);
  const jailed = await pose(program, NOBODY);
  await pose(program, NOBODY - 1);
  expect((await findProcesses(roots())).map(({ pid }) => pid)).toEqual([jailed]);
});

test("what runs another program does not count as a QEMU; one that was upgraded meanwhile still is", async () => {
  await pose("/bin/bash");
  const qemu = await pose(program);
  await rm(program);
  expect((await findProcesses(roots())).map(({ pid }) => pid)).toEqual([qemu]);
});

test("a process has the threads that it has, by its own numbers", async () => {
  const pid = await pose(program);
  expect(await hasThread(pid, pid)).toBe(true);
  expect(await hasThread(pid, process.pid)).toBe(false);
  expect(await hasThread(2 ** 22 + 1, 1), "one that has ended has none").toBe(false);
});
