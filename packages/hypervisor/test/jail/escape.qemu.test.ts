/** A guest that has broken out of QEMU finds itself nobody, nowhere, with nothing. */
import type { ChildProcess } from "node:child_process";
import { execFile } from "node:child_process";
import { once } from "node:events";
import type { Readable } from "node:stream";
import { text } from "node:stream/consumers";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { ATTEMPTS, attempt, FORK } from "./attempts.ts";
import { FIRST_UID, Prison } from "./stand-in.ts";

const run = promisify(execFile);
const isRoot = process.getuid?.() === 0;

interface Sleeper {
  /** Its launcher. */
  child: ChildProcess;
  pid: number;
  /** Kills it. Resolves with what ended the launcher once nothing of both is left, as the next one gets the same places. */
  end(): Promise<string | null>;
}

/** A stand-in that does nothing. Rejects with what it complained of when it does not even do that. */
async function sleeper(prison: Prison): Promise<Sleeper> {
  const child = await prison.start('print "ready\\n"; sleep 60');
  const ended = once(child, "exit") as Promise<[number | null, NodeJS.Signals | null]>;
  const complaint = text(child.stderr as Readable);
  const failed = ended.then(async ([code, signal]) => {
    throw new Error(`it ended with ${signal ?? code}: ${await complaint}`);
  });
  failed.catch(() => {}); // it ends in any case
  const begun = Promise.all([text(child.stdio[4] as Readable), once(child.stdout as Readable, "data")]);
  const [said] = await Promise.race([begun, failed]);
  const pid = Number(/^pid (\d+)$/m.exec(said)?.[1]);
  const end = async () => {
    process.kill(pid, "SIGKILL");
    return (await ended)[1];
  };
  return { child, pid, end };
}

describe.runIf(isRoot).each([
  { by: "root", root: true },
  { by: "a user", root: false },
])("a jail made by $by", ({ root }) => {
  let prison: Prison;
  beforeAll(async () => {
    prison = await Prison.open({ root });
  });
  afterAll(() => prison.close());

  test.each(ATTEMPTS)("$what", async (one) => {
    expect(await prison.run(attempt(one))).toMatch(root ? one.expected : (one.withoutRoot ?? one.expected));
  });

  test.runIf(root)("a memory that others began with, too, can be read, and not be changed in any way", async () => {
    const code = `
      my ($f, $read);
      open($f, "+<", $p{memory}) && sysread($f, $read, 6);
      my @refused = (
        !defined(syswrite($f, "x")), !truncate($f, 1), !chmod(0666, $p{memory}), !unlink($p{memory}),
        syscall(257, -100, $p{memory}, 2) == -1, syscall(257, -100, "/proc/self/fd/" . fileno($f), 2) == -1,
      );
      print join(" ", $read, map { $_ ? "refused" : "done" } @refused);
    `;
    expect(await prison.run(code, { borrowed: true })).toBe(`secret ${Array(6).fill("refused").join(" ")}`);
  });

  test("every process that it starts is counted", async () => {
    const said = await prison.run(FORK);
    const made = Number(said.split(" ")[0]);
    if (root) {
      expect(made).toBeLessThan(256);
      expect(said).toContain("Resource temporarily unavailable");
    } else expect(made).toBe(2000); // Limits on processes count for the whole user: only control groups could bound it.
  });

  test("it has no capability, no way to get one, and a user of its own", async () => {
    const { child, pid, end } = await sleeper(prison);
    try {
      const { stdout } = await run("cat", [`/proc/${pid}/status`]);
      const of = (name: string) => new RegExp(`^${name}:\\s+(.*)$`, "m").exec(stdout)?.[1];
      for (const name of ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"]) expect(of(name)).toBe("0".repeat(16));
      expect([of("NoNewPrivs"), of("Seccomp"), of("NSpid")]).toEqual(["1", "2", `${pid}\t1`]);
      if (root) expect(Number(of("Uid")?.split("\t")[0])).toBeGreaterThan(FIRST_UID);
      // The process that waits for it has no rights either.
      const launcher = (await run("cat", [`/proc/${child.pid}/status`])).stdout;
      expect(/^CapEff:\s+(.*)$/m.exec(launcher)?.[1]).toBe("0".repeat(16));
    } finally {
      await end();
    }
  });

  test("it has room for QEMU's descriptors before it has threads: making it later would hold up the guest's wake", async () => {
    const { pid, end } = await sleeper(prison);
    try {
      const { stdout } = await run("cat", [`/proc/${pid}/status`]);
      expect(Number(/^FDSize:\s+(\d+)$/m.exec(stdout)?.[1])).toBeGreaterThanOrEqual(512);
    } finally {
      await end();
    }
  });

  test("nothing is left when it ends, also when it is killed", async () => {
    const { end } = await sleeper(prison);
    expect(await end()).toBe("SIGKILL");
    const { stdout } = await run("cat", ["/proc/self/mounts"]);
    expect(stdout).not.toContain(prison.dataDir);
  });
});
