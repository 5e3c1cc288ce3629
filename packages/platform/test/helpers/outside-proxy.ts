/** `hibernaut proxy` in a process of its own, which ends with the test. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import type { Place } from "./served.ts";

const CLI = join(import.meta.dirname, "../../../cli/bin/hibernaut.js");

/** Starts it for the platform of the place. Resolves when it listens, with its address. */
export async function startProxy(place: Place, variables: Record<string, string> = {}): Promise<string> {
  const env = {
    ...process.env,
    HIBERNAUT_DATA_DIR: place.home,
    HIBERNAUT_PROXY_LISTEN: "127.0.0.1:0",
    HIBERNAUT_LOG_LEVEL: "silent",
    ...variables,
  };
  const child = spawn(process.execPath, [CLI, "proxy", "--json"], { env, stdio: ["ignore", "pipe", "inherit"] });
  const ended = once(child, "exit");
  onTestFinished(async () => {
    child.kill();
    await ended;
  });
  const tooEarly = ended.then(([code]) => Promise.reject(new Error(`The proxy ended with ${code}.`)));
  tooEarly.catch(() => {}); // it ends with the test
  const [line] = await Promise.race([once(child.stdout, "data"), tooEarly]);
  return (JSON.parse(String(line)) as { proxy_url: string }).proxy_url;
}
