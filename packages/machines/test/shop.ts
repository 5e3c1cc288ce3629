/** An app on a fake host: each test of a file has a fresh one. */
import type { MachineConfig } from "@hibernaut/domain/config";
import type { MachineEvent, MachineRecord, MachineState } from "@hibernaut/domain/machine";
import type { Volumes } from "@hibernaut/volumes/open";
import { afterEach, beforeEach, expect } from "vitest";
import type { FakeHost } from "../../hypervisor/src/fake/index.ts";
import {
  type FakePlatform,
  newWorld,
  type PlatformParts,
  SMALL,
  startPlatform,
  type World,
} from "../../platform/test/helpers/fake-world.ts";
import type { Machines } from "../src/resources/machines.ts";
import type { WaitTarget } from "../src/waiting.ts";

/** Only a fault reaches it. */
const PATIENT_MS = 10_000;

/** Gives each test a platform made of these parts, with the app `shop`. */
export function shopForEach(parts: PlatformParts = {}): Shop {
  const shop = new Shop(parts);
  beforeEach(() => shop.begin());
  afterEach(() => shop.end());
  return shop;
}

class Shop {
  world!: World;
  platform!: FakePlatform;
  readonly #parts: PlatformParts;

  constructor(parts: PlatformParts) {
    this.#parts = parts;
  }

  get host(): FakeHost {
    return this.world.host;
  }

  get machines(): Machines {
    return this.platform.machines;
  }

  get volumes(): Volumes {
    return this.platform.volumes;
  }

  async begin(): Promise<void> {
    this.world = await newWorld();
    await this.open();
    this.platform.apps.create("shop");
  }

  /** Starts the next platform. */
  async open(parts: PlatformParts = {}): Promise<void> {
    const settings = { ...this.#parts.settings, ...parts.settings };
    this.platform = await startPlatform(this.world, { ...this.#parts, ...parts, settings });
  }

  /** Ends the platform, and starts the next one. */
  async restart(parts: PlatformParts = {}): Promise<void> {
    await this.platform.close();
    await this.open(parts);
  }

  /** Ends everything. Whatever a test was about: no machine ran twice, and no snapshot did. */
  async end(): Promise<void> {
    this.world.releaseBoots();
    await this.platform.close();
    expect(this.host.mostPerMachine).toBeLessThanOrEqual(1);
    expect(new Set(this.host.restored).size, "no snapshot ran twice").toBe(this.host.restored.length);
    await this.world.dispose();
  }

  record(id: string): MachineRecord {
    return this.machines.get("shop", id).record;
  }

  /** The machine's history, newest first: all of it, or the events of one type. */
  events(id: string, type?: string): MachineEvent[] {
    return this.machines.events("shop", id, 1000).filter((event) => type === undefined || event.type === type);
  }

  /** What is in the platform's log so far. */
  logged(): string[] {
    return this.world.logged.map(({ message }) => message);
  }

  async reach(id: string, ...targets: WaitTarget[]): Promise<MachineState> {
    return (await this.machines.wait("shop", id, targets, { timeoutMs: PATIENT_MS })).state;
  }

  /** A machine that has not run yet. */
  async create(config: Partial<MachineConfig> = {}): Promise<string> {
    const { record } = await this.machines.create("shop", { config: { ...SMALL, ...config }, skipLaunch: true });
    return record.id;
  }

  /** A machine that is being started. */
  async launch(config: Partial<MachineConfig> = {}): Promise<string> {
    const { record } = await this.machines.create("shop", { config: { ...SMALL, ...config } });
    return record.id;
  }

  /** A machine that runs. */
  async run(config: Partial<MachineConfig> = {}): Promise<string> {
    const id = await this.launch(config);
    await this.reach(id, "running");
    return id;
  }

  /** A machine that sleeps. */
  async sleeper(config: Partial<MachineConfig> = {}): Promise<string> {
    const id = await this.run(config);
    await this.suspend(id);
    return id;
  }

  async start(id: string): Promise<void> {
    this.machines.start("shop", id);
    await this.reach(id, "running");
  }

  async suspend(id: string): Promise<void> {
    this.machines.suspend("shop", id);
    await this.reach(id, "suspended");
  }

  async stop(id: string): Promise<void> {
    this.machines.stop("shop", id);
    await this.reach(id, "stopped");
  }

  /** Updates the machine to this configuration, and returns before that is done. */
  async update(id: string, config: Partial<MachineConfig> = {}): Promise<void> {
    await this.machines.update("shop", id, { ...SMALL, ...config });
  }

  /** Holds what VMMs do of this kind, until the returned function is called. */
  hold(what: keyof FakeHost["hold"]): () => void {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.host.hold[what] = promise;
    return () => {
      delete this.host.hold[what];
      resolve();
    };
  }

  /** Ends the machine's VMM from outside. */
  lose(id: string): void {
    for (const { ref } of this.host.of(id)) this.host.end(ref);
  }

  /** A request to the app: the answers of one guest have the same nonce, and count. */
  request(id: string): { nonce: string; count: number } | undefined {
    return this.host.guest(id)?.request();
  }
}
