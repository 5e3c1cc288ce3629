/** Runs mmdebstrap: what it makes goes to a file, what it says to the caller, and it ends when the build does. */
import { type ChildProcess, spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { createWriteStream } from "node:fs";
import { createInterface } from "node:readline";
import { Transform } from "node:stream";
import { pipeline } from "node:stream/promises";
import { HibernautError } from "@hibernaut/domain/errors";
import { programEnvironment } from "@hibernaut/lib/exec";
import type { BaseLayer } from "./image.ts";

interface RunOptions {
  /** The file for the root file system. */
  out: string;
  /** Where mmdebstrap makes its temporary directory. All users must be able to reach it. */
  scratch: string;
  signal: AbortSignal;
  /** Gets what mmdebstrap says, line by line. */
  onLine(line: string): void;
  /** Default: mmdebstrap. Tests replace it. */
  program?: string;
}

/** The cause of a failure is in the last lines, which apt fills with its hints. */
const LAST_LINES = 8;
/** mmdebstrap gets this long, in milliseconds, to remove its temporary directory, in which it may have 700 MB. */
const GRACE_MS = 30_000;

/**
 * Runs mmdebstrap until it ends, and describes the file that it made. Rejects with the signal's reason when that is
 * aborted, with `failed_precondition` when mmdebstrap is missing, and with `unavailable` when it fails. In any case, it
 * has ended then.
 */
export async function runMmdebstrap(args: readonly string[], options: RunOptions): Promise<BaseLayer> {
  const { out, scratch, signal, onLine, program = "mmdebstrap" } = options;
  signal.throwIfAborted();
  const env = { ...programEnvironment(), LC_ALL: "C", TMPDIR: scratch };
  // A group of its own: what it starts, such as dpkg, ends with it. It asks nobody anything.
  const child = spawn(program, args, { env, stdio: ["ignore", "pipe", "pipe"], detached: true });
  const closed = new Promise<number | null>((resolve, reject) => child.on("error", reject).on("close", resolve));
  const last: string[] = [];
  createInterface({ input: child.stderr }).on("line", (line) => {
    last.push(line);
    if (last.length > LAST_LINES) last.shift();
    onLine(line);
  });
  const sum = summing();
  const failed = new AbortController();
  const written = pipeline(child.stdout, sum.stream, createWriteStream(out));
  written.catch(() => failed.abort());
  const release = endWith(child, AbortSignal.any([signal, failed.signal]));
  const [code, wrote] = await Promise.allSettled([closed, written]);
  release();
  signal.throwIfAborted();
  if (code.status === "rejected") throw startFailure(code.reason);
  if (wrote.status === "rejected") throw wrote.reason;
  if (code.value !== 0) throw buildFailure(code.value, last);
  return sum.result();
}

/** Asks the program to end when the signal is aborted, and insists when it does not. Returns how to stop that. */
function endWith(child: ChildProcess, signal: AbortSignal): () => void {
  let timer: NodeJS.Timeout | undefined;
  const abort = () => {
    sendToGroup(child.pid, "SIGTERM");
    timer = setTimeout(() => sendToGroup(child.pid, "SIGKILL"), GRACE_MS);
  };
  signal.addEventListener("abort", abort, { once: true });
  return () => {
    clearTimeout(timer);
    signal.removeEventListener("abort", abort);
  };
}

function sendToGroup(leader: number | undefined, name: NodeJS.Signals): void {
  try {
    if (leader !== undefined) process.kill(-leader, name);
  } catch {
    // It has ended.
  }
}

function summing() {
  const hash = createHash("sha256");
  let bytes = 0;
  const stream = new Transform({
    transform(chunk: Buffer, _encoding, done) {
      hash.update(chunk);
      bytes += chunk.length;
      done(null, chunk);
    },
  });
  return { stream, result: () => ({ digest: `sha256:${hash.digest("hex")}`, bytes }) };
}

function startFailure(error: unknown): unknown {
  if ((error as NodeJS.ErrnoException).code !== "ENOENT") return error;
  const message =
    "The base image of sandboxes is made with mmdebstrap, which this host does not have. Install mmdebstrap (apt-get install mmdebstrap), or give an image.";
  return new HibernautError("failed_precondition", message, { program: "mmdebstrap" });
}

function buildFailure(code: number | null, last: readonly string[]): HibernautError {
  const said =
    last.length === 0 ? "It said nothing." : `Its last lines:\n${last.map((line) => `  ${line}`).join("\n")}`;
  const message = `mmdebstrap could not make the base image of sandboxes (exit code ${code ?? "none"}). Remove the cause and try again, or give an image. ${said}`;
  return new HibernautError("unavailable", message, { program: "mmdebstrap", ...(code !== null && { code }) });
}
