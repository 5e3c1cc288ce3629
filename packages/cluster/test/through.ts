/**
 * One platform, to a test: a cluster of two hosts, of which the test talks to the first, `a`, while all machines are on the
 * second, `b`. So every request about a machine is sent on. `npm run test:cluster` runs stories that way.
 */
import { type ClientOptions, HibernautClient } from "@hibernaut/client";
import { guestsIn } from "@hibernaut/hypervisor/qemu/find-processes";
import { killProcess } from "@hibernaut/hypervisor/qemu/process";
import { vi } from "vitest";
import { Served } from "../../platform/test/helpers/platform-process.ts";
import { addPreparedImages } from "../../platform/test/helpers/prepared-images.ts";
import { dataFolder } from "../../platform/test/helpers/qemu-world.ts";
import { slowed } from "../../platform/test/helpers/slow.ts";
import { initCluster, joinCluster } from "../src/join.ts";
import { type Etcd, startEtcd } from "./etcd.ts";

/** Only a fault reaches it. */
const SETTLE_MS = slowed(60_000);
/** The host that has the machines. */
export const OWNER = "b";
const FRONT = "a";
/** Of both hosts: a free port of loopback. */
const CLUSTER = { HIBERNAUT_PEER_LISTEN: "127.0.0.1:0" };
/** Of the second host: TCP services have their ports on both, so at another address. */
const OWNER_ONLY = { HIBERNAUT_TCP_LISTEN: "127.0.0.2", HIBERNAUT_PROXY: "inside" };

interface ThroughOptions {
  /** The data directory of the host with the machines. */
  dataDir: string;
  /** Whether the images of the QEMU tests are there. */
  images: boolean;
  env: Record<string, string>;
  options: Partial<ClientOptions>;
}

/** A client that has its machines and volumes made on the second host: images of tests are files, which any host has. */
class PlacingClient extends HibernautClient {
  override createMachine(...[app, body, options]: Parameters<HibernautClient["createMachine"]>) {
    // A template has its host.
    return super.createMachine(app, body.template === undefined ? { host: OWNER, ...body } : body, options);
  }

  override createVolume(...[app, body, options]: Parameters<HibernautClient["createVolume"]>) {
    return super.createVolume(app, { host: OWNER, ...body }, options);
  }
}

/** The two platforms. `dataDir` is that of the first. Both start and end together, and have the same settings, except where they listen. */
export class ThroughPeer extends Served {
  readonly #owner: Served;
  readonly #etcd: Etcd;
  readonly #region: string;
  readonly #dispose: () => Promise<void>;

  private constructor(
    { dataDir, env, options }: ThroughOptions,
    front: { path: string; dispose(): Promise<void> },
    etcd: Etcd,
  ) {
    super(front.path, { ...env, ...CLUSTER }, options);
    this.#owner = new Served(dataDir, { ...elsewhere(env), ...CLUSTER, ...OWNER_ONLY }, options);
    this.#etcd = etcd;
    this.#region = env["HIBERNAUT_REGION"] ?? "local";
    this.#dispose = front.dispose;
  }

  /** Makes the cluster. {@link start} begins both platforms. */
  static async open(options: ThroughOptions): Promise<ThroughPeer> {
    const front = await dataFolder();
    const etcd = await startEtcd().catch(async (error: unknown) => {
      await front.dispose();
      throw error;
    });
    const through = new ThroughPeer(options, front, etcd);
    try {
      if (options.images) await addPreparedImages(front.path);
      await through.#form();
      return through;
    } catch (error) {
      await through.dispose();
      throw error;
    }
  }

  async #form(): Promise<void> {
    const at = { peer: "127.0.0.1" };
    const settings = (dataDir: string) => ({ dataDir, region: this.#region });
    const directory = { etcd: this.#etcd.endpoints };
    await initCluster({ settings: settings(this.dataDir), name: FRONT, directory, ...at });
    // So that its bridge does not take the network that the cluster's first host has chosen for all.
    await super.start({ HIBERNAUT_NETWORK: "user" });
    const { token } = await this.client.createJoinToken();
    await joinCluster({ settings: settings(this.#owner.dataDir), name: OWNER, version: "0.1.0", token, ...at });
    await super.stop();
  }

  override async start(env: Record<string, string> = {}, options: string[] = []): Promise<void> {
    // What a host refuses to start with, it refuses because of its machines.
    await this.#owner.start({ ...elsewhere(env), ...OWNER_ONLY }, options);
    try {
      await super.start(env);
      await this.#seesOwner();
      await this.client.drainHost(FRONT);
    } catch (error) {
      await this.stop();
      throw error;
    }
  }

  override async kill(): Promise<void> {
    await Promise.all([this.#owner.kill(), super.kill()]);
  }

  override async stop(): Promise<void> {
    await Promise.all([this.#owner.stop(), super.stop()]);
  }

  override get apiUrls(): string[] {
    return [this.apiUrl, this.#owner.apiUrl];
  }

  /** Those of both, the second host's first. */
  override async metrics(): Promise<string> {
    return (await Promise.all([this.#owner.metrics(), super.metrics()])).join("");
  }

  override makeClient(options: ClientOptions): HibernautClient {
    return new PlacingClient(options);
  }

  /** Ends both, and removes what is not the second host's. */
  async dispose(): Promise<void> {
    try {
      await this.kill();
      for (const guest of await guestsIn(this.dataDir)) await killProcess(guest);
    } finally {
      await this.#etcd.dispose();
      await this.#dispose();
    }
  }

  /** Waits until the first host knows where the second one listens since its latest start. */
  async #seesOwner(): Promise<void> {
    const entry = async (client: HibernautClient) => {
      const { hosts } = await client.getCluster();
      return hosts.find(({ name }) => name === OWNER);
    };
    await vi.waitFor(
      async () => {
        const [own, seen] = await Promise.all([entry(this.#owner.client), entry(this.client)]);
        const isReady = own?.state === "up" && !own.draining && seen?.started_at === own.started_at && !seen?.draining;
        if (!isReady) throw new Error(`host a sees ${JSON.stringify(seen)}, host b says ${JSON.stringify(own)}`);
      },
      { timeout: SETTLE_MS, interval: 20 },
    );
  }
}

/** The same settings with free ports. */
function elsewhere(env: Record<string, string>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(env).map(([name, value]) => [name, name.endsWith("_LISTEN") ? value.replace(/:\d+$/, ":0") : value]),
  );
}
