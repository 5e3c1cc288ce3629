/** What tests on real QEMU share: the counter image, a guest bundle, requests to a guest. */
import { copyFile, mkdir, mkdtemp, rm } from "node:fs/promises";
import { request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { uninstallBridge } from "@hibernaut/network/bridge/remove";
import { slowed } from "./slow.ts";

const ROOT = join(import.meta.dirname, "../../../..");
/** The demo image that setup packs. */
export const COUNTER_IMAGE = `oci:${join(ROOT, ".build/counter")}:latest`;
export const BUNDLE = join(ROOT, "packages/guest/.build/bundle");

/** What runs guests in tests on QEMU: `npm run test:kvm` has them under KVM where it works. */
export const ACCELERATOR = process.env["HIBERNAUT_TEST_ACCELERATOR"] === "kvm" ? "kvm" : "tcg";
/** A file with the proof of KVM that a platform would store, for a host where the proof takes a minute. */
const VERDICT = process.env["HIBERNAUT_TEST_KVM_VERDICT"];

export interface CounterAnswer {
  nonce: string;
  count: number;
  pid: number;
  uptime_ms: number;
  now: string;
}

/** One request on a connection of its own. Rejects when the guest does not answer within `timeoutMs`. */
export function ask(address: string, port = 8080, timeoutMs = slowed(10_000)): Promise<CounterAnswer> {
  return new Promise((resolve, reject) => {
    const sent = request({ host: address, port, agent: false, timeout: timeoutMs }, (response) => {
      let text = "";
      response.setEncoding("utf8");
      response.on("data", (chunk: string) => {
        text += chunk;
      });
      response.on("end", () => resolve(JSON.parse(text) as CounterAnswer));
      response.on("error", reject);
    });
    sent.on("timeout", () => sent.destroy(new Error("the guest does not answer")));
    sent.on("error", reject);
    sent.end();
  });
}

/** Asks until there is an answer. The emulated network accepts before the guest does, so the first tries may be reset. */
export async function askUntilAnswered(
  address: string,
  port = 8080,
  deadlineMs = slowed(30_000),
): Promise<CounterAnswer> {
  const end = performance.now() + deadlineMs;
  for (;;) {
    try {
      return await ask(address, port);
    } catch (error) {
      if (performance.now() > end) throw error;
      await delay(10);
    }
  }
}

/** A data directory and its platform's part of the host's network. The path is short, because socket paths are. */
export async function dataFolder(): Promise<{ path: string; dispose(): Promise<void> }> {
  const path = await mkdtemp(join(tmpdir(), "hibernaut-"));
  await mkdir(join(path, "cfg"));
  if (VERDICT !== undefined) await copyFile(VERDICT, join(path, "kvm-verdict.json"));
  const dispose = async () => {
    await uninstallBridge(path);
    await rm(path, { recursive: true, force: true, maxRetries: 5 });
  };
  return { path, dispose };
}
