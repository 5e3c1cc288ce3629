/** A snapshot of a small memory, without a machine around it. */
import { randomBytes } from "node:crypto";
import { mkdir, mkdtemp, open, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { CURRENT_PROTOCOL } from "@hibernaut/domain/agent-protocol";
import { vi } from "vitest";
import type { SnapshotOrigin } from "../src/manifest.ts";
import { SnapshotStore } from "../src/store.ts";

export const MACHINE = "3f9c01ab22de41";
export const GENERATION = "01J0000000000000000000GEN1";
const MIB = 1024 * 1024;
/** Zeros, something, zeros again, and a last piece that is shorter than a MiB. */
export const MEMORY_BYTES = 3 * MIB + 5 * 4096;
export const SLOWLY = { rate: 10_000 * MIB, signal: new AbortController().signal };

export const ORIGIN: SnapshotOrigin = {
  machineId: MACHINE,
  machineVersion: "01J000000000000000000VERS1",
  hypervisor: { hypervisor: "qemu", version: "7.2", accelerator: "tcg", cpu_model: "max", machine_type: "q35" },
  bundleVersion: "bundle-1",
  agentProtocol: CURRENT_PROTOCOL,
  imageDigest: "sha256:1",
  cpus: 1,
  memoryMb: 128,
};

/** A machine's directory with one published and sealed generation. */
export class Sealed {
  readonly folder: string;
  readonly trouble: string[] = [];
  readonly #stores: SnapshotStore[] = [];

  constructor(folder: string) {
    this.folder = folder;
  }

  static async make(): Promise<Sealed> {
    const sealed = new Sealed(await mkdtemp(join(tmpdir(), "hibernaut-sealed-")));
    const memory = Buffer.alloc(MEMORY_BYTES);
    randomBytes(MIB).copy(memory, MIB);
    randomBytes(8192).copy(memory, MEMORY_BYTES - 8192);
    await mkdir(join(sealed.folder, MACHINE));
    await writeFile(join(sealed.folder, MACHINE, "memory"), memory);
    const store = sealed.store("boot-1");
    const draft = await store.draft(MACHINE, GENERATION);
    await writeFile(draft.devices, randomBytes(10_000));
    await store.publish(draft, ORIGIN, { createdAt: "2026-05-01T12:00:00.000Z", clockMs: 1_777_636_800_000 });
    await vi.waitUntil(() => store.verifiedAt(MACHINE, GENERATION));
    return sealed;
  }

  /** The snapshots as a platform sees them in this boot of the host. */
  store(bootId: string): SnapshotStore {
    const store = new SnapshotStore({
      machineFolder: (id) => join(this.folder, id),
      bootId,
      hotPages: async () => [
        [3, 5],
        [300, 700],
        [9000, 9001],
      ],
      onTrouble: (_, reason) => this.trouble.push(reason),
    });
    this.#stores.push(store);
    return store;
  }

  /** Why a wake in this boot would not use the snapshot, and whether it read all of the memory. */
  async refusal(bootId: string): Promise<{ reason: string | undefined; read: string | undefined }> {
    const found = await this.store(bootId).fitting(GENERATION, ORIGIN);
    if (typeof found === "string") return { reason: found, read: undefined };
    const damage = await found.files.damage(SLOWLY.signal);
    return { reason: damage?.reason ?? (await found.files.flaw()), read: damage?.why };
  }

  path(name: "memory" | "devices" | "manifest.json" | "seal.json"): string {
    return join(this.folder, MACHINE, "snapshots", GENERATION, name);
  }

  /** Changes one bit of a file. Doing it again restores it. */
  async flip(name: Parameters<Sealed["path"]>[0], bit: number): Promise<void> {
    await using file = await open(this.path(name), "r+");
    const byte = Buffer.alloc(1);
    await file.read(byte, 0, 1, bit >> 3);
    byte[0] = (byte[0] as number) ^ (1 << (bit & 7));
    await file.write(byte, 0, 1, bit >> 3);
  }

  async dispose(): Promise<void> {
    await Promise.all(this.#stores.map((store) => store.close()));
    await rm(this.folder, { recursive: true, force: true });
  }
}
