/** A platform on a fake host: real store, real snapshot files, no QEMU. */
import { createHash } from "node:crypto";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { existsSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { RUN_VARIABLE } from "../../../../scripts/leftovers.mjs";
import type { HypervisorIdentity, Hypervisor } from "../../src/hypervisor/contract.ts";
import { FakeHost, FakeHypervisor } from "../../src/hypervisor/fake/index.ts";
import type { HeldImage, Image, ImageStore } from "../../src/images/contract.ts";
import type { MachineConfig } from "../../src/domain/config.ts";
import type { MachineDependencies } from "../../src/machines/dependencies.ts";
import { MachineFiles } from "../../src/machines/files.ts";
import { MachineManager } from "../../src/machines/manager.ts";
import { Slots } from "../../src/machines/slots.ts";
import { UserNetwork } from "../../src/network/user.ts";
import { openSecrets } from "../../src/secrets/index.ts";
import { SnapshotStore } from "../../src/snapshots/store.ts";
import type { Store } from "../../src/store/contract.ts";
import { openStore } from "../../src/store/store.ts";
import { VolumeFiles } from "../../src/volumes/files.ts";
import { Volumes } from "../../src/volumes/index.ts";

/** Memory of test machines: small, so that thousands of memory files fit anywhere. */
export const SMALL: MachineConfig = { image: "app:1", guest: { memory_mb: 128 }, services: [{ internal_port: 8080 }] };

/** Every reference that does not begin with `missing` exists. */
class AnyImages implements ImageStore {
  async ensure(ref: string): Promise<Image> {
    const digest = `sha256:${createHash("sha256").update(ref).digest("hex")}`;
    return imageOf(ref, digest);
  }
  async hold(ref: string): Promise<HeldImage> {
    return { ...(await this.ensure(ref)), [Symbol.dispose]: () => {} };
  }
  async get(digest: string): Promise<Image | undefined> {
    return imageOf("any", digest);
  }
  async list(): Promise<[]> {
    return [];
  }
  async collect(): Promise<string[]> {
    return [];
  }
  async dropLayers(): Promise<number> {
    return 0;
  }
}

function imageOf(ref: string, digest: string): Image {
  const config = { entrypoint: ["app"], cmd: [], env: [], user: "", workingDir: "/" };
  return { ref, digest, rootfs: "/nowhere", config, sizeBytes: 0 };
}

/** A layer is a small file: the fake mounts nothing. */
class FastFiles extends MachineFiles {
  override async freshLayer(machineId: string): Promise<void> {
    await writeFile(this.paths(machineId).layer, "");
  }
}

/** Likewise for volumes: files of their size, without a file system. */
export class FastVolumeFiles extends VolumeFiles {
  override async format(): Promise<void> {}
}

export interface World {
  folder: string;
  host: FakeHost;
  /** What the next platform finds: change it to see snapshots refused. */
  identity: Partial<HypervisorIdentity>;
  bundleVersion: string;
  store: Store;
  logged: { message: string; fields: Record<string, unknown> }[];
  dispose(): Promise<void>;
}

/** Memory-backed where possible: these tests prove order, not that the kernel can fsync. */
export async function newWorld(): Promise<World> {
  const folder = await mkdtemp(
    join(existsSync("/dev/shm") ? "/dev/shm" : tmpdir(), `hibernaut-${process.env[RUN_VARIABLE] ?? "fake"}-`),
  );
  await Promise.all([mkdir(join(folder, "machines")), mkdir(join(folder, "run"))]);
  const store = openStore(join(folder, "hibernaut.db"));
  const dispose = async () => {
    store.close();
    await rm(folder, { recursive: true, force: true });
  };
  return { folder, host: new FakeHost(), identity: {}, bundleVersion: "bundle-1", store, logged: [], dispose };
}

export interface PlatformParts {
  hypervisor?: Hypervisor;
  bootSlots?: number;
  settings?: Partial<MachineDependencies["settings"]>;
  wrap?(deps: MachineDependencies): MachineDependencies;
}

/** Starts a platform in the world, as after a restart, and lets it recover. */
export async function startPlatform(world: World, parts: PlatformParts = {}): Promise<MachineManager> {
  const files = new FastFiles(world.folder, 64);
  const note = (fields: Record<string, unknown>, message: string) => void world.logged.push({ fields, message });
  const bundle = { version: world.bundleVersion, kernel: "", initrd: "" };
  const volumes = new Volumes({
    store: world.store,
    files: new FastVolumeFiles(world.folder),
    holdStill: (id, work) => machines.holdStill(id, work),
    onTrouble: (message) => note({}, message),
  });
  const deps: MachineDependencies = {
    hypervisor: parts.hypervisor ?? new FakeHypervisor(world.host, world.identity),
    store: world.store,
    images: new AnyImages(),
    network: new UserNetwork(),
    snapshots: new SnapshotStore((id) => files.paths(id).folder),
    secrets: openSecrets({ store: world.store.secrets, keyFile: join(world.folder, "secrets.key") }),
    bundles: { current: bundle, get: (version) => ({ ...bundle, version }) },
    volumes,
    files,
    bootSlots: new Slots(parts.bootSlots ?? 8),
    settings: {
      region: "local",
      suspendMaxMemoryMb: 2048,
      bootTimeoutMs: 5000,
      readyTimeoutMs: 1000,
      resumeTimeoutMs: 5000,
      suspendTimeoutMs: 5000,
      hookTimeoutMs: 1000,
      keepAwakeMaxS: 3600,
      logMaxMb: 16,
      proxySuffixes: ["localhost"],
      ...parts.settings,
    },
    log: { info: note, warn: note, error: note },
  };
  const machines: MachineManager = new MachineManager(parts.wrap?.(deps) ?? deps);
  await volumes.recover();
  await machines.recover();
  return machines;
}

/** An app with one running machine. */
export async function runningMachine(machines: MachineManager, config: Partial<MachineConfig> = {}): Promise<string> {
  machines.createApp("shop");
  const { record } = await machines.create("shop", { config: { ...SMALL, ...config } });
  await machines.wait("shop", record.id, ["running"], { timeoutMs: 5000 });
  return record.id;
}
