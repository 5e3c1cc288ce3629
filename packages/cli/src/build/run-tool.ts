/** Runs a program of a build: its output goes to a log, and it ends when the build does. */
import { spawn } from "node:child_process";
import { appendFileSync } from "node:fs";
import { CliError } from "../failure.ts";

interface ToolOptions {
  cwd: string;
  env?: Record<string, string>;
  /** Gets everything that the program prints. */
  log: string;
  signal: AbortSignal;
  /** What the program does, as the end of "... failed": `npm ci`. */
  what?: string;
}

/** The last lines of the output are part of the error: enough for a compiler's message. */
const LAST_LINES = 15;
const LAST_BYTES = 8192;
/** How programs that builds need are installed. */
const INSTALL: Record<string, string> = {
  npm: "apt-get install npm",
  pnpm: "npm install --global pnpm",
  yarn: "npm install --global yarn",
  python3: "apt-get install python3 python3-pip",
  go: "apt-get install golang-go, or from go.dev",
};
/** A program that is asked to end gets this long, in milliseconds, to remove its temporary files. */
const GRACE_MS = 5000;

/**
 * Runs a program without a shell, and returns what it wrote to standard output. Rejects with `build_tool_missing` when it
 * is not installed, with `build_failed` when it fails, and with the signal's reason when that is aborted. Then the
 * program and all that it started are ended.
 */
export async function runTool(program: string, args: readonly string[], options: ToolOptions): Promise<string> {
  const { cwd, env = {}, log, signal } = options;
  const what = options.what ?? [program, ...args].join(" ");
  signal.throwIfAborted();
  appendFileSync(log, `$ ${[program, ...args].join(" ")}\n`);
  // A group of its own, so that what it starts ends with it.
  const child = spawn(program, args, {
    cwd,
    env: { ...process.env, ...env },
    stdio: ["ignore", "pipe", "pipe"],
    detached: true,
  });
  let stdout = "";
  let last = "";
  const keep = (text: string) => {
    appendFileSync(log, text);
    last = (last + text).slice(-LAST_BYTES);
  };
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    stdout = (stdout + text).slice(-LAST_BYTES);
    keep(text);
  });
  child.stderr.setEncoding("utf8").on("data", keep);
  const ending = endWith(signal, (name) => endGroup(child.pid, name));
  try {
    const code = await new Promise<number | null>((resolve, reject) => child.on("error", reject).on("close", resolve));
    signal.throwIfAborted();
    if (code === 0) return stdout.trim();
    throw new CliError(
      "build_failed",
      `${what} failed with exit code ${code ?? "unknown"}.${tail(last)}\nThe whole log: ${log}`,
    );
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
    const hint = INSTALL[program];
    throw new CliError(
      "build_tool_missing",
      `The build needs ${program}, which is not in the PATH. Install it${hint === undefined ? "" : ` (${hint})`}, and deploy again.`,
    );
  } finally {
    ending();
  }
}

/** Sends SIGTERM when the signal is aborted, then SIGKILL. Returns how to stop that. */
function endWith(signal: AbortSignal, send: (name: NodeJS.Signals) => void): () => void {
  let timer: NodeJS.Timeout | undefined;
  const abort = () => {
    send("SIGTERM");
    timer = setTimeout(() => send("SIGKILL"), GRACE_MS);
  };
  signal.addEventListener("abort", abort, { once: true });
  return () => {
    clearTimeout(timer);
    signal.removeEventListener("abort", abort);
  };
}

function endGroup(pid: number | undefined, signal: NodeJS.Signals): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, signal);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
  }
}

function tail(output: string): string {
  const lines = output.trimEnd().split("\n").slice(-LAST_LINES);
  return output.trim() === ""
    ? " It printed nothing."
    : ` Last output:\n${lines.map((line) => `  ${line}`).join("\n")}`;
}
