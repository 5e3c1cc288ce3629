/** The API on a free port, over a platform on a fake host. Everything is gone when it is closed. */
import { join } from "node:path";
import { openCertificates } from "@hibernaut/certs/open";
import { RequestPlaces } from "@hibernaut/connections";
import { EventStream, openWebhooks } from "@hibernaut/events";
import { openImages } from "@hibernaut/images/open";
import type { LogBlocks, Resources } from "@hibernaut/machines";
import { imagesInUse } from "@hibernaut/machines/in-use";
import { Usage } from "@hibernaut/metering";
import { AppAddresses } from "@hibernaut/proxy";
import { openVault } from "@hibernaut/secrets/open";
import { readSettings } from "@hibernaut/settings";
import type { TokenStore } from "@hibernaut/store";
import pino from "pino";
import { onTestFinished, vi } from "vitest";
import { Library } from "../../images/src/library.ts";
import { budgetOf } from "../../platform/test/helpers/connections.ts";
import { FakeAuthority } from "../../platform/test/helpers/fake-authority.ts";
import { FakeRegistries } from "../../platform/test/helpers/fake-images.ts";
import {
  type FakePlatform,
  newWorld,
  type PlatformParts,
  startPlatform,
  type World,
} from "../../platform/test/helpers/fake-world.ts";
import { buildApi } from "../src/app.ts";
import { AuditLog } from "../src/audit/log.ts";
import type { Api, ApiDeps } from "../src/deps.ts";
import { listenForApi } from "../src/listen.ts";
import { createToken } from "../src/tokens.ts";
import { type Call, checkedCalls } from "./openapi-check.ts";

export interface TestApi {
  api: Api;
  url: string;
  token: string;
  tokens: TokenStore;
  /** The real platform behind the API. Only the hypervisor, the image store and the registries are fakes. */
  platform: FakePlatform;
  /** The fake host: make boots fail with `host.faults.boot`, or take forever with `holdBoots()`. */
  world: World;
  /** Where certificates come from. Its terms are agreed to. */
  authority: FakeAuthority;
  /** How many clients wait for a state or read logs at the moment. */
  open: { waits: number; logs: number };
  /** Lines that the API logged, parsed. */
  logged: Record<string, unknown>[];
  /** Prints a line in a running machine. Settles when it is in the log. */
  print(id: string, line: string, stream?: "stdout" | "stderr"): Promise<void>;
  close(): Promise<void>;
}

const HELD_BOOT_MS = 120_000;
/** A line is on the disk within milliseconds, unless the host is busy. */
const WRITTEN_MS = 10_000;

/** Starts the API. `changes` replace parts of the platform behind it; `place` is a platform that runs already, and stays. */
export async function startApi(
  changes: Partial<ApiDeps> = {},
  { quota, place }: Pick<PlatformParts, "quota"> & { place?: { world: World; platform: FakePlatform } } = {},
): Promise<TestApi> {
  const world = place?.world ?? (await newWorld());
  // A boot that a test holds must not time out while the CLI starts on a busy host.
  const platform =
    place?.platform ??
    (await startPlatform(world, {
      settings: { bootTimeoutMs: HELD_BOOT_MS },
      ...(quota && { quota }),
    }));
  const open = countOpen(platform);
  const logged: Record<string, unknown>[] = [];
  const logger = pino(
    { level: "warn" },
    { write: (line) => void logged.push(JSON.parse(line) as Record<string, unknown>) },
  );
  const { tokens, sessions } = world.store;
  const library = new Library({
    images: world.images,
    inUse: () => imagesInUse(world.store),
    keepMs: 0,
    onFault: (err) => logger.error({ err }, "images could not be collected"),
  });
  const addresses = new AppAddresses(platform.hostnames, ["localhost"]);
  const authority = new FakeAuthority();
  await authority.agree();
  const { manager: certificates } = await openCertificates({
    settings: readSettings({ HIBERNAUT_DATA_DIR: world.folder, XDG_CONFIG_HOME: world.folder }),
    store: world.store.certificates,
    namesOf: (app) => addresses.namesOf(app),
    requireRoom: (app) => platform.quotas.requireCertificate(app),
    log: { info() {}, warn() {} },
    authority,
    examine: async () => [{ what: "dns", status: "ok", found: "It leads to this host.", records: [] }],
  });
  const { uploads } = await openImages({ dataDir: join(world.folder, "uploaded") });
  const audit = new AuditLog({
    folder: join(world.folder, "audit"),
    maxBytes: 1024 * 1024,
    onFault: (err) => logger.error({ err }, "the audit log could not be flushed"),
  });
  const events = new EventStream(world.store.outbox);
  const webhooks = openWebhooks({
    settings: { blockedNetworks: [], webhookPrivateAddresses: "allow", webhookHttp: "allow", webhookTimeoutMs: 2_000 },
    vault: openVault({ store: world.store.secrets, keyFile: join(world.folder, "secrets.key") }),
    ...{ store: world.store, stream: events, version: "0.1.0", log: logger },
  });
  webhooks.start();
  const closePlatform = async () => {
    await webhooks.close();
    await audit.close();
    await certificates.close();
    world.releaseBoots();
    if (place !== undefined) return;
    await platform.close();
    await world.dispose();
  };
  const connections = budgetOf();
  const api = await buildApi({
    places: new RequestPlaces(connections),
    ...platform,
    images: library,
    uploads,
    certificates,
    registries: new FakeRegistries(),
    usage: new Usage({ store: world.store.usage }),
    tokens,
    sessions,
    stream: events,
    webhooks,
    platform: {
      version: "0.1.0",
      region: "local",
      hypervisor: { hypervisor: "fake", version: "1", accelerator: "fake", cpu_model: "none", machine_type: "none" },
      acceleratorReason: "a test",
      network: { mode: "user", reason: "a test" },
      guestBundle: "1",
    },
    async *doctor() {
      yield { name: "node", status: "ok", found: process.versions.node };
    },
    audit,
    previewTtlS: 3600,
    check: () => world.store.check(),
    logger,
    ...changes,
  }).catch(async (error: unknown) => {
    await closePlatform();
    throw error;
  });
  const url = await listenForApi(api, { host: "127.0.0.1", port: 0 }, connections);
  const { token } = createToken(tokens, "test");
  return {
    api,
    url,
    token,
    tokens,
    platform,
    world,
    authority,
    open,
    logged,
    async print(id, line, stream) {
      const app = world.store.machines.get(id)?.app ?? "";
      world.host.guest(id)?.print(line, stream);
      const written = async () => {
        const last = await lastLine(platform, app, id);
        if (last !== line) throw new Error(`the last line is ${last}, not ${line}`);
      };
      await vi.waitFor(written, { timeout: WRITTEN_MS });
    },
    async close() {
      await api.close();
      await closePlatform();
    },
  };
}

/** Starts the API for one test, with apps, and closes it after the test. Replies to `call` are held against the document. */
export async function testApi(
  changes: Partial<ApiDeps> = {},
  { apps = ["shop"], ...options }: Parameters<typeof startApi>[1] & { apps?: string[] } = {},
): Promise<{ server: TestApi; call: Call }> {
  const server = await startApi(changes, options);
  onTestFinished(() => server.close());
  for (const app of apps) server.platform.apps.create(app);
  return { server, call: await checkedCalls(server) };
}

/** What a request with a token has. */
export const as = (token: string) => ({ headers: { authorization: `Bearer ${token}` } });

/** Counts the waits and readers of logs that are open, by wrapping the methods that open them. */
function countOpen({ machines, logs }: Resources): { waits: number; logs: number } {
  const open = { waits: 0, logs: 0 };
  const wait = machines.wait.bind(machines);
  machines.wait = (...args) => {
    open.waits += 1;
    return wait(...args).finally(() => (open.waits -= 1));
  };
  const read = logs.read.bind(logs);
  logs.read = (...args) => counted(read(...args));
  async function* counted(blocks: LogBlocks): LogBlocks {
    open.logs += 1;
    try {
      yield* blocks;
    } finally {
      open.logs -= 1;
    }
  }
  return open;
}

async function lastLine({ logs }: Resources, app: string, id: string): Promise<string | undefined> {
  let last: string | undefined;
  const signal = new AbortController().signal;
  for await (const block of logs.read(app, { machines: [id], limit: 1, signal })) last = block.at(-1)?.text ?? last;
  return last;
}
