/** Running programs of the host. */
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { promisify } from "node:util";
import { messageOf } from "./text.ts";

const execute = promisify(execFile);

/**
 * Words before a command that has time: machines that serve requests come first, at the CPUs and at the disk. Spawn it `detached`: a
 * kernel with autogroups (sched(7)) shares CPUs among sessions first, where machines come behind the session of the platform.
 */
export const LOW_PRIORITY = [
  ...["sh", "-c", 'echo 10 2>/dev/null >/proc/self/autogroup; exec "$@"', "sh"],
  ...["nice", "-n", "10", "ionice", "-c", "2", "-n", "7"],
] as const;

/** More of what a program complains about does not explain its failure better. Characters. */
const MAX_STDERR = 16_384;

/**
 * The environment for programs of the host. Programs for administrators (`mkfs.ext4`, `ip`, `nft`) are in directories
 * that Debian leaves out of an ordinary user's PATH.
 */
export function programEnvironment(): NodeJS.ProcessEnv {
  return { ...process.env, PATH: `${process.env.PATH ?? ""}:/usr/sbin:/sbin` };
}

/**
 * Runs a program without a shell and returns its output. After `timeoutMs` milliseconds it is killed. Rejects with
 * Node's error: `code` is `ENOENT` when the program is not installed; {@link failureReason} explains the others.
 *
 * @example
 * const { stdout } = await run("skopeo", ["--version"], { timeoutMs: 10_000 });
 */
export function run(
  program: string,
  args: readonly string[],
  { timeoutMs }: { timeoutMs: number },
): Promise<{ stdout: string; stderr: string }> {
  return execute(program, [...args], { timeout: timeoutMs, env: programEnvironment() });
}

/**
 * Runs a program until it ends, or kills it when the signal is aborted. Settles once the process is gone: rejects with
 * the signal's reason, or with an error that {@link failureReason} explains.
 */
export async function runUntilAborted(
  program: string,
  args: readonly string[],
  signal: AbortSignal,
  environment: Readonly<Record<string, string>> = {},
): Promise<void> {
  signal.throwIfAborted();
  const env = { ...programEnvironment(), ...environment };
  const options = { stdio: ["ignore", "ignore", "pipe"] as ["ignore", "ignore", "pipe"], env };
  // A group of its own: what a script has started holds its output open, and ends with it.
  const child = spawn(program, [...args], { ...options, detached: true });
  const abort = () => killGroup(child.pid);
  signal.addEventListener("abort", abort, { once: true });
  let stderr = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    if (stderr.length < MAX_STDERR) stderr += text;
  });
  try {
    const [code, killedBy] = (await once(child, "close")) as [number | null, string | null];
    signal.throwIfAborted();
    if (code !== 0)
      throw Object.assign(new Error(`${program} ended with code ${code}`), { stderr, signal: killedBy ?? undefined });
  } finally {
    signal.removeEventListener("abort", abort);
  }
}

/**
 * Why a call failed: the signal that ended the program, otherwise what it wrote to stderr, otherwise the error's message.
 * A program that was killed may have written something before, which does not explain its end.
 */
export function failureReason(error: unknown): string {
  const { stderr, signal, killed } = (error ?? {}) as { stderr?: unknown; signal?: unknown; killed?: unknown };
  const said = typeof stderr === "string" ? stderr.trim() : "";
  if (killed === true) return `it took too long and was ended${said === "" ? "" : ` (${said})`}`;
  if (typeof signal === "string") return `it was ended by the signal ${signal}${said === "" ? "" : ` (${said})`}`;
  return said || messageOf(error);
}

/** Kills a program that leads a group of processes, and all of them. Does nothing when they have ended. */
export function killGroup(leader: number | undefined): void {
  try {
    if (leader !== undefined) process.kill(-leader, "SIGKILL");
  } catch {
    // It has ended.
  }
}
