/** The doors for clients of apps, sandboxes and Fly, and what begins when they open: checks, usage and certificates. */
import { verifyToken } from "@hibernaut/api";
import { CheckRunner } from "@hibernaut/checks";
import { background } from "@hibernaut/lib/background";
import { UsageRecorder } from "@hibernaut/metering";
import type { Way } from "@hibernaut/network";
import { startCoordinator } from "@hibernaut/proxy";
import { makeKey, readKey } from "@hibernaut/secrets/key";
import type { Traffic } from "@hibernaut/store";
import { openFlyPort } from "./fly.ts";
import type { OpenedApi } from "./open-api.ts";
import { openSandboxes } from "./sandboxes.ts";

/** Where the doors are. */
export interface Doors {
  /** Where apps answer. Undefined if proxies run in processes of their own. */
  proxyUrl: string | undefined;
  /** Where sandboxes answer. Undefined unless they are on. */
  sandboxUrl: string | undefined;
  /** Where Fly's clients are answered. Undefined unless that is on. */
  flyUrl: string | undefined;
}

/** Opens them. Machines are recovered, and the API listens. */
export async function openDoors(opened: OpenedApi): Promise<Doors> {
  const { settings, log, open, registry, connections, tracing, files, store, keyFile, vault, cluster } = opened;
  const { network, authority, resources, volumes, proxies, checkResults, kept } = opened;
  const { addresses, certificates, challenges, webhooks, api, proxied } = opened;
  const checks = new CheckRunner(resources.machines, checkResults);
  open.defer(() => checks.close());
  const connectionsSurvive = network.network.mode === "bridge";
  const recorder = new UsageRecorder({
    store: store.usage,
    intervalMs: settings.usageIntervalS * 1000,
    machines: () => resources.machines.all().map(({ record }) => record.id),
    layerBytes: (id) => files.layerBytes(id),
    log,
  });
  open.defer(() => recorder.close());
  // The last platform may have ended before it measured what machines wrote.
  background(recorder.measureLayers(), "measuring what machines wrote");
  const onTraffic = (id: string, traffic: Traffic) => recorder.moved(id, traffic);
  const inside = { connectionsSurvive, gateway: network.gateway, lead: (ways: readonly Way[]) => network.lead(ways) };
  const onTaken = (ports: readonly number[]) =>
    void network
      .proxied(ports)
      .catch((err: unknown) => log.warn({ err }, "clients have no limit at ports that proxies opened"));
  const parts = { resources, checks, proxies, addresses, challenges, ...inside, onTraffic, onTaken };
  const coordinator = await startCoordinator({ ...parts, settings, registry, connections, tracing, cluster, log });
  cluster?.handle("proxy", (socket) => coordinator.acceptHost(socket));
  cluster?.handle("tcp", (socket) => coordinator.acceptTcp(socket));
  proxied.coordinator = coordinator;
  open.defer(() => coordinator.close());
  // An authority asks for proofs at once, so the proxies come first.
  open.defer(
    resources.hostnames.subscribe(() => background(certificates.look(), "looking for certificates that are due")),
  );
  certificates.start();
  webhooks.start();
  open.defer(resources.startTimer());
  open.defer(resources.scrubber.start());
  open.defer(resources.consoles.start());
  const sandboxes = await openSandboxes(settings, {
    ...{ resources, connections, kept, log, volumes, builds: store.builds },
    verify: (text) => verifyToken(store.tokens, text),
    secret: () => readKey(keyFile) ?? makeKey(keyFile),
    vault,
    egressAuthority: () => authority.certificate(),
  });
  proxied.sandboxes = sandboxes;
  const fly = await openFlyPort(settings, { api, tokens: store.tokens, connections, log });
  open.defer(() => fly?.close());
  open.defer(() => sandboxes?.close());
  if (sandboxes !== undefined) await network.opened("sandboxListen", sandboxes.url);
  if (fly !== undefined) await network.opened("flyListen", fly.url);
  const proxyUrl = addresses.url();
  const where = proxyUrl === undefined ? "proxies run in processes of their own" : `apps answer at ${proxyUrl}`;
  log.info({ proxyUrl }, where);
  return { proxyUrl, sandboxUrl: sandboxes?.url, flyUrl: fly?.url };
}
