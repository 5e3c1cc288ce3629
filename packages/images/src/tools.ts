/** Runs the programs that import images: limited in time and output, cancellable, without a shell. */
import { spawn } from "node:child_process";

interface ToolOptions {
  /** Working directory of the program. */
  cwd: string;
  /** Kill the program after this long, in milliseconds. */
  timeoutMs: number;
  /** Kills the program. The call then rejects with `cancelled()`. */
  signal: AbortSignal;
  /** Receives what the program writes to its standard output, as it comes. */
  onOutput?(text: string): void;
}

type ToolProblem = "failed" | "missing" | "timeout" | "output";

/** How a program ended. */
interface ToolEnd {
  stderr?: string;
  code?: number;
}

/** A program failed. `message` is the last line of its output, for people. */
export class ToolFailure extends Error {
  override name = "ToolFailure";
  readonly tool: string;
  readonly problem: ToolProblem;
  /** The end of its stderr; the cause is not always in the last line. */
  readonly stderr: string;
  /** Its exit code, if it has ended by itself. */
  readonly code: number | undefined;

  constructor(tool: string, problem: ToolProblem, reason: string, { stderr = "", code }: ToolEnd = {}) {
    super(reason);
    this.tool = tool;
    this.problem = problem;
    this.stderr = stderr;
    this.code = code;
  }
}

/** Makes the error of a cancelled import: an `AbortError`, as everywhere in Node. */
export function cancelled(): DOMException {
  return new DOMException("The operation was cancelled", "AbortError");
}

/** Registries must accept manifests and configurations of up to 4 MiB, so larger ones are rare. */
const MAX_STDOUT_BYTES = 4 * 1024 * 1024;
/** The reason of a failure is near the end of a tool's output. */
const STDERR_TAIL_BYTES = 8 * 1024;

/**
 * Runs a program and returns its standard output. Rejects with a ToolFailure, or with `cancelled()`.
 *
 * The program dies with this process, even if that is killed: `setpriv` (util-linux, always installed) asks the kernel
 * for this. Otherwise a killed platform would leave an import running.
 */
export function runTool(tool: string, args: readonly string[], options: ToolOptions): Promise<string> {
  const { cwd, timeoutMs, signal } = options;
  return new Promise((resolve, reject) => {
    if (signal.aborted) return reject(cancelled());
    const child = spawn("setpriv", ["--pdeathsig", "KILL", "--", tool, ...args], {
      cwd,
      // Keeps large temporary files with the import, where they are deleted with it, rather than in /tmp or /var/tmp.
      env: { ...process.env, LC_ALL: "C", TMPDIR: cwd },
      stdio: ["ignore", "pipe", "pipe"],
    });
    const stdout: Buffer[] = [];
    let stdoutBytes = 0;
    let stderr = "";
    let problem: ToolProblem = "failed";

    const kill = () => {
      child.kill("SIGKILL");
      // A child of the tool that outlives it must not keep us waiting for the end of its output.
      child.stdout.destroy();
      child.stderr.destroy();
    };
    const timer = setTimeout(() => {
      problem = "timeout";
      kill();
    }, timeoutMs);
    signal.addEventListener("abort", kill);

    child.stdout.on("data", (chunk: Buffer) => {
      stdoutBytes += chunk.length;
      options.onOutput?.(String(chunk));
      if (stdoutBytes <= MAX_STDOUT_BYTES) return stdout.push(chunk);
      problem = "output";
      return kill();
    });
    child.stderr.setEncoding("utf8").on("data", (chunk: string) => {
      stderr = (stderr + chunk).slice(-STDERR_TAIL_BYTES);
    });
    const settle = (settled: () => void) => {
      clearTimeout(timer);
      signal.removeEventListener("abort", kill);
      settled();
    };
    child.on("error", (error) => settle(() => reject(new ToolFailure(tool, "missing", error.message))));
    child.on("close", (code) => {
      settle(() => {
        if (signal.aborted) reject(cancelled());
        else if (code === 0 && problem === "failed") resolve(Buffer.concat(stdout).toString("utf8"));
        else reject(failure(tool, problem, code, stderr, timeoutMs));
      });
    });
  });
}

/** setpriv's exit code when the program does not exist (127) or may not be run (126). */
const NOT_STARTED = new Set([126, 127]);

function failure(
  tool: string,
  problem: ToolProblem,
  code: number | null,
  stderr: string,
  timeoutMs: number,
): ToolFailure {
  if (problem === "timeout") return new ToolFailure(tool, problem, `it took longer than ${timeoutMs / 1000} s`);
  if (problem === "output") return new ToolFailure(tool, problem, "it wrote more than 4 MiB");
  if (NOT_STARTED.has(code ?? 0)) return new ToolFailure(tool, "missing", `${tool} is not installed`);
  const reason = lastLine(stderr) || `it ended with code ${code ?? "(killed)"}`;
  return new ToolFailure(tool, "failed", reason, { stderr, ...(code !== null && { code }) });
}

/**
 * Returns the last line of a tool's output without decoration: skopeo's `level=fatal msg="..."`, and colors.
 */
function lastLine(stderr: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: colors start with the escape character
  const lines = stderr.replace(/\x1b\[[0-9;]*m/g, "").split("\n");
  const last = lines.map((line) => line.trim()).findLast((line) => line !== "") ?? "";
  const quoted = /\bmsg=("(?:[^"\\]|\\.)*")/.exec(last)?.[1];
  // The message around the reason already names the image.
  return (quoted === undefined ? last.replace(/^⨯\s*/, "") : unquote(quoted)).replace(
    /^(?:Error parsing image name|initializing source) \S+: /,
    "",
  );
}

function unquote(quoted: string): string {
  try {
    return String(JSON.parse(quoted));
  } catch {
    return quoted.slice(1, -1);
  }
}
