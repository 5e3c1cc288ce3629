/** The service's programs as processes of their own. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import type { Readable } from "node:stream";
import { text } from "node:stream/consumers";
import { onTestFinished } from "vitest";

/** Starts one of the programs in `src`. It is killed when the test ends. */
export function run(script: string, env: Record<string, string>, ...args: string[]): ChildProcess {
  const program = join(import.meta.dirname, "../src", script);
  const child = spawn(process.execPath, [program, ...args], {
    env: { PATH: process.env.PATH, NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE, PORT: "0", ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  onTestFinished(() => void child.kill("SIGKILL"));
  return child;
}

/** How a program ends: its exit code, its output, and its lifetime from now on in milliseconds. */
export async function finished(child: ChildProcess) {
  const began = performance.now();
  const [output, errors, [code]] = await Promise.all([
    child.stdout ? text(child.stdout) : "",
    child.stderr ? text(child.stderr) : "",
    once(child, "exit"),
  ]);
  return { code: code as number | null, output, errors, ms: performance.now() - began };
}

/** Waits until a stream matches, and returns the match. */
export async function heard(stream: Readable | null, pattern: RegExp): Promise<RegExpExecArray> {
  let all = "";
  for await (const chunk of stream?.iterator({ destroyOnReturn: false }) ?? []) {
    all += String(chunk);
    const found = pattern.exec(all);
    if (found) return found;
  }
  throw new Error(`never heard ${pattern}, but: ${all}`);
}

/** Waits until the service says where it listens. Returns that address, and what was logged until then. */
export async function listening(child: ChildProcess): Promise<{ url: string; log: string }> {
  const { 1: url = "", input: log } = await heard(child.stdout, /"url":"(http[^"]+)"/);
  return { url, log };
}
