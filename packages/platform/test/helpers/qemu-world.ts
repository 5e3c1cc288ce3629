/** What tests on real QEMU share: the counter image, a guest bundle, requests to a guest. */
import { copyFile, mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { uninstallBridge } from "@hibernaut/network/bridge/remove";
import { patiently, request } from "./http.ts";
import { slowed } from "./slow.ts";

const ROOT = join(import.meta.dirname, "../../../..");
/** The demo image that setup packs. */
export const COUNTER_IMAGE = `oci:${join(ROOT, ".build/counter")}:latest`;
/** The sample service, which setup packs, too. */
export const ORDERS_IMAGE = `oci:${join(ROOT, ".build/orders")}:latest`;
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

/** Asks the app of a machine, past the proxy. Rejects when it does not answer in time. */
export async function ask(address: string): Promise<CounterAnswer> {
  const { text } = await request(`http://${address}:8080/`, { timeout: slowed(10_000) });
  return JSON.parse(text) as CounterAnswer;
}

export function askUntilAnswered(address: string): Promise<CounterAnswer> {
  return patiently(() => ask(address));
}

/** A data directory and its platform's part of the host's network. The path is short, because socket paths are. */
export async function dataFolder(place = tmpdir()): Promise<{ path: string; dispose(): Promise<void> }> {
  const path = await mkdtemp(join(place, "hibernaut-"));
  await mkdir(join(path, "cfg"));
  if (VERDICT !== undefined) await copyFile(VERDICT, join(path, "kvm-verdict.json"));
  const dispose = async () => {
    await uninstallBridge(path);
    await rm(path, { recursive: true, force: true, maxRetries: 5 });
  };
  return { path, dispose };
}
