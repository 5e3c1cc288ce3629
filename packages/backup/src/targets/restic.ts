/** Runs restic: with as little as it needs, at low priority, and never longer than the platform. */
import { type ChildProcessByStdio, spawn } from "node:child_process";
import { once } from "node:events";
import type { Readable, Writable } from "node:stream";
import { setTimeout as delay } from "node:timers/promises";
import { LOW_PRIORITY } from "@hibernaut/lib/exec";
import { messageOf } from "@hibernaut/lib/text";
import { type Asked, isHopeless, resticFailure, resticMissing } from "./failures.ts";

/** More complaints than these don't explain a failure better. Characters. */
const MAX_STDERR = 16_384;
/** What restic prints for programs: a list of 100,000 snapshots. Characters. */
const MAX_STDOUT = 64 * 1024 * 1024;
/** How long restic may take to remove its lock when it is interrupted, in milliseconds. Then it is killed. */
const INTERRUPT_MS = 10_000;
/**
 * How long restic may take nothing from its input, or give nothing, in milliseconds. It tries again by itself for a quarter of an
 * hour when a server does not answer.
 */
const STALL_MS = 30 * 60_000;
/** Exit codes of `ionice` when the program does not exist, and when it may not be run. */
const NOT_THERE = 127;
const NOT_RUNNABLE = 126;
/** What the host's administrator says about the way to the internet. */
const PASSED_ON = ["HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy", "SSL_CERT_FILE"];

/** What restic is run with, apart from its arguments. */
export interface ResticAccess {
  program: string;
  /** Options of all commands, such as how to reach the server. Nothing secret: everyone on the host can read them. */
  options: readonly string[];
  /** Repository, key and credentials. */
  environment: Readonly<Record<string, string>>;
  /** The place, as people write it. */
  place: string;
  /** What the program complained about that restic reaches the server with: restic may end before it has passed that on. */
  complaints?: () => Promise<string>;
}

/** One run of restic. */
interface ResticCall {
  args: readonly string[];
  /** What is being done, for errors, as in "The backup could not be stored". */
  what: string;
  signal: AbortSignal;
}

type Child = ChildProcessByStdio<Writable, Readable, Readable>;

/** A restic at work. */
class Running {
  readonly child: Child;
  readonly #asked: Asked;
  readonly #program: string;
  readonly #complaints: ResticAccess["complaints"];
  readonly #exit: Promise<number | null>;
  #stderr = "";
  #failure: Error | undefined;

  constructor(access: ResticAccess, { args, what }: ResticCall) {
    this.#asked = { place: access.place, what };
    this.#program = access.program;
    this.#complaints = access.complaints;
    const words = [...LOW_PRIORITY, access.program, ...access.options, ...args];
    // It ends with the platform, however that ends.
    this.child = spawn("setpriv", ["--pdeathsig", "KILL", "--", ...words], {
      stdio: ["pipe", "pipe", "pipe"],
      detached: true,
      env: minimalEnvironment(access.environment),
    });
    this.#exit = (once(this.child, "close") as Promise<[number | null]>).then(
      ([code]) => code,
      (error: Error) => {
        this.#failure = error;
        return null;
      },
    );
    // Its exit code says why it reads no more.
    this.child.stdin.on("error", () => {});
    this.child.stderr.setEncoding("utf8").on("data", (text: string) => {
      if (this.#stderr.length >= MAX_STDERR) return;
      this.#stderr += text;
      if (isHopeless(this.#stderr)) this.child.kill("SIGINT");
    });
  }

  /** Resolves when restic has ended well. Rejects with the reason when it has not. */
  async end(): Promise<void> {
    const code = await this.#exit;
    if (this.#failure !== undefined) throw new Error(`restic cannot be started: ${messageOf(this.#failure)}`);
    if (code === 0) return;
    if (code === NOT_THERE || code === NOT_RUNNABLE) throw resticMissing(this.#program);
    const more = (await this.#complaints?.()) ?? "";
    throw resticFailure(`${this.#stderr}\n${more}`, this.#asked);
  }

  /** The same, and rejects when that takes longer: what was given is stored by then, or never. */
  async endWithin(ms: number): Promise<void> {
    const late = new AbortController();
    const limit = delay(ms, undefined, { signal: late.signal, ref: false }).then(
      () => Promise.reject(this.stalled()),
      () => {}, // it has ended in time
    );
    await Promise.race([this.end(), limit]).finally(() => late.abort());
  }

  /**
   * Ends restic, which removes its lock if it can. Its input stays open until then: it takes the end of its input for the
   * end of a file that is whole.
   */
  async kill(): Promise<void> {
    if (this.child.exitCode !== null || this.child.signalCode !== null) return void (await this.#exit);
    this.child.stdout.resume();
    this.child.kill("SIGINT");
    const ended = new AbortController();
    const limit = delay(INTERRUPT_MS, undefined, { signal: ended.signal }).then(
      () => this.child.kill("SIGKILL"),
      () => {}, // it has ended in time
    );
    // One that waits for a dead disk in the kernel does not even end when it is killed.
    await Promise.race([this.#exit, limit.then(() => delay(INTERRUPT_MS, undefined, { ref: false }))]);
    ended.abort();
  }

  /** Writes to restic's input, once it has taken what it has. */
  async give(chunk: Buffer, signal: AbortSignal): Promise<void> {
    const { stdin } = this.child;
    if (stdin.write(chunk)) return;
    await new Promise<void>((resolve, reject) => {
      const settle = (error?: Error) => {
        clearTimeout(limit);
        stdin.off("drain", taken);
        this.child.off("close", taken);
        signal.removeEventListener("abort", abort);
        if (error === undefined) resolve();
        else reject(error);
      };
      const taken = () => settle();
      const abort = () => settle(signal.reason as Error);
      const limit = setTimeout(() => settle(this.stalled()), STALL_MS);
      stdin.once("drain", taken);
      // It may have ended between the write and now.
      if (this.hasEnded) return settle();
      this.child.once("close", taken);
      signal.addEventListener("abort", abort, { once: true });
    });
  }

  get hasEnded(): boolean {
    return this.child.exitCode !== null || this.child.signalCode !== null || this.#failure !== undefined;
  }

  stalled(): Error {
    return resticFailure("i/o timeout", this.#asked);
  }
}

/** Runs restic and returns what it prints. */
export async function runRestic(
  access: ResticAccess,
  { timeoutMs, ...call }: ResticCall & { timeoutMs: number },
): Promise<string> {
  call.signal.throwIfAborted();
  const running = new Running(access, call);
  const limit = AbortSignal.timeout(timeoutMs);
  return untilAborted(running, AbortSignal.any([call.signal, limit]), async () => {
    running.child.stdin.end();
    let stdout = "";
    running.child.stdout.setEncoding("utf8").on("data", (text: string) => {
      if (stdout.length < MAX_STDOUT) stdout += text;
    });
    await running.end();
    if (stdout.length >= MAX_STDOUT) throw new Error("restic printed more than can be read");
    return stdout;
  }).catch((error: unknown) => {
    throw limit.aborted && !call.signal.aborted ? running.stalled() : error;
  });
}

/**
 * Runs restic with an input, and returns what it prints. When the source fails, restic is killed before its input ends, so
 * that it never stores a part as the whole.
 */
export async function feedRestic(
  access: ResticAccess,
  { source, ...call }: ResticCall & { source: AsyncIterable<Buffer> },
): Promise<string> {
  call.signal.throwIfAborted();
  const running = new Running(access, call);
  return untilAborted(running, call.signal, async () => {
    let stdout = "";
    running.child.stdout.setEncoding("utf8").on("data", (text: string) => {
      // The last line counts.
      stdout = (stdout + text).slice(-MAX_STDERR);
    });
    for await (const chunk of source) {
      if (running.hasEnded) break;
      await running.give(chunk, call.signal);
    }
    call.signal.throwIfAborted();
    if (!running.hasEnded) running.child.stdin.end();
    await running.endWithin(STALL_MS);
    return stdout;
  });
}

/** Yields what restic prints. Ends restic when no longer read. */
export async function* readRestic(access: ResticAccess, call: ResticCall): AsyncGenerator<Buffer, void> {
  call.signal.throwIfAborted();
  const running = new Running(access, call);
  const kill = () => void running.child.kill("SIGKILL");
  call.signal.addEventListener("abort", kill, { once: true });
  let stalled = false;
  const limit = setTimeout(() => {
    stalled = true;
    kill();
  }, STALL_MS);
  try {
    running.child.stdin.end();
    for await (const chunk of running.child.stdout as AsyncIterable<Buffer>) {
      yield chunk;
      limit.refresh();
    }
    call.signal.throwIfAborted();
    if (stalled) throw running.stalled();
    await running.end();
  } finally {
    clearTimeout(limit);
    call.signal.removeEventListener("abort", kill);
    await running.kill();
  }
}

/** Does the work; when that fails or the signal is aborted, restic is gone before the reason is thrown. */
async function untilAborted<T>(running: Running, signal: AbortSignal, work: () => Promise<T>): Promise<T> {
  let killing: Promise<void> | undefined;
  const abort = () => {
    killing = running.kill();
  };
  signal.addEventListener("abort", abort, { once: true });
  try {
    return await work();
  } catch (error) {
    await (killing ?? running.kill());
    throw signal.aborted ? signal.reason : error;
  } finally {
    signal.removeEventListener("abort", abort);
  }
}

function minimalEnvironment(own: Readonly<Record<string, string>>): NodeJS.ProcessEnv {
  const { PATH = "/usr/bin:/bin" } = process.env;
  const environment: NodeJS.ProcessEnv = { PATH, LC_ALL: "C", ...own };
  for (const name of PASSED_ON) if (process.env[name] !== undefined) environment[name] = process.env[name];
  return environment;
}
