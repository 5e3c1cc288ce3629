/** From an order to HTTPS, at a real certificate authority, through real ports of the proxy. */
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { connect as connectTls } from "node:tls";
import { certificateMetrics } from "@hibernaut/api";
import { AppAddresses, ConnectedProxies, startCoordinator } from "@hibernaut/proxy";
import { readSettings } from "@hibernaut/settings";
import { Registry } from "prom-client";
import { expect, onTestFinished, test, vi } from "vitest";
import { freePort } from "../../../scripts/lib/free-port.mjs";
import { diagnose } from "../../platform/src/doctor.ts";
import { budgetOf } from "../../platform/test/helpers/connections.ts";
import { newWorld, startPlatform } from "../../platform/test/helpers/fake-world.ts";
import { connectOverSocket } from "../../proxy/src/connect-over-socket.ts";
import { coordinatorSocketPath } from "../../proxy/src/coordinator-socket.ts";
import { type RunningProxy, startProxy } from "../../proxy/src/start-proxy.ts";
import type { CertificateView } from "../src/contract.ts";
import { openCertificates } from "../src/open.ts";
import { startDns } from "./dns-server.ts";
import { startPebble } from "./pebble.ts";

const DAY = 86_400_000;
const NAME = "www.example.com";
/** Only a fault reaches it. An order at pebble takes a second or two. */
const PATIENT = { timeout: 40_000, interval: 50 };

interface Options {
  proxy?: "inside" | "outside";
  nonceReject?: number;
  hook?: (txtFile: string) => string;
  /** The name server says that every name is at 127.0.0.1. */
  publicAddresses?: string;
  challenge?: "http-01" | "tls-alpn-01";
}

/** A platform on a fake host, whose proxy has real ports, with pebble as its authority. */
async function rig({
  proxy = "inside",
  nonceReject = 0,
  hook,
  publicAddresses = "127.0.0.1",
  challenge = "http-01",
}: Options = {}) {
  const world = await newWorld();
  onTestFinished(() => world.dispose());
  const platform = await startPlatform(world);
  platform.apps.create("shop");
  platform.hostnames.add("shop", NAME);
  const txtFile = join(world.folder, "txt");
  const dns = await startDns(txtFile);
  const [httpPort, tlsPort] = [await freePort(), await freePort()];
  const pebble = await startPebble({ dns: dns.address, httpPort, tlsPort, nonceReject });
  const program = join(world.folder, "hook");
  if (hook !== undefined) await writeFile(program, hook(txtFile), { mode: 0o700 });
  const settings = readSettings({
    HIBERNAUT_DATA_DIR: world.folder,
    XDG_CONFIG_HOME: world.folder,
    HIBERNAUT_LOG_LEVEL: "silent",
    HIBERNAUT_PROXY: proxy,
    HIBERNAUT_PROXY_LISTEN: `127.0.0.1:${httpPort}`,
    HIBERNAUT_PROXY_TLS_LISTEN: `127.0.0.1:${tlsPort}`,
    HIBERNAUT_ACME_DIRECTORY: pebble.directory,
    HIBERNAUT_ACME_CA_FILE: pebble.caFile,
    HIBERNAUT_ACME_EMAIL: "admin@example.com",
    HIBERNAUT_PUBLIC_ADDRESSES: publicAddresses,
    HIBERNAUT_ACME_CHALLENGE: challenge,
    ...(hook !== undefined && { HIBERNAUT_ACME_DNS_HOOK: program }),
  });
  /** How far the clock is ahead of the host's. */
  const clock = { aheadMs: 0 };
  const logged: string[] = [];
  const log = { info() {}, warn: (_fields: object, message: string) => void logged.push(message) };
  const addresses = new AppAddresses(platform.hostnames, settings.proxySuffixes);
  const { manager, challenges } = await openCertificates({
    settings,
    store: world.store.certificates,
    namesOf: (app) => addresses.namesOf(app),
    log,
    clock: () => new Date(Date.now() + clock.aheadMs),
    looking: { dnsServers: [dns.address], httpPort, tlsPort },
  });
  const registry = new Registry();
  certificateMetrics(registry, manager);
  const coordinator = await startCoordinator({
    resources: platform,
    checks: { isHealthy: () => true, subscribe: () => () => {} },
    proxies: new ConnectedProxies(),
    addresses,
    challenges,
    gateway: undefined,
    lead: async () => {},
    connectionsSurvive: false,
    onTraffic() {},
    settings,
    registry,
    connections: budgetOf(),
    log,
  });
  const outside: RunningProxy[] = [];
  if (proxy === "outside") {
    const connected = Promise.withResolvers<void>();
    const running = await startProxy({
      settings,
      registry: new Registry(),
      connections: budgetOf(),
      log,
      connect: (options) =>
        connectOverSocket(coordinatorSocketPath(world.folder), { ...options, onConnection: () => connected.resolve() }),
    });
    outside.push(running);
    await connected.promise;
  }
  onTestFinished(async () => {
    await manager.close();
    for (const running of outside) await running.close();
    await coordinator.close();
    await platform.close();
  });

  const r = {
    ...{ world, platform, manager, pebble, dns, clock, logged, settings, registry },
    /** Orders a certificate and waits until the order has ended. */
    async add(name = NAME): Promise<CertificateView> {
      await manager.add("shop", name, { agreeToTerms: true, signal: new AbortController().signal });
      return vi.waitFor(() => {
        const view = manager.get("shop", name);
        if (view.status === "ordering") throw new Error("still being ordered");
        return view;
      }, PATIENT);
    },
    /** The serial number of what the proxy shows for a name, to clients that trust `root`. */
    async shown(name: string, root: string): Promise<string> {
      const socket = connectTls({ port: tlsPort, host: "127.0.0.1", servername: name, ca: root });
      try {
        await new Promise((resolve, reject) => socket.once("secureConnect", resolve).once("error", reject));
        return socket.getPeerCertificate().serialNumber;
      } finally {
        socket.destroy();
      }
    },
    /** Waits until the proxy shows a certificate that is not `before`. */
    async shows(name: string, root: string, before = ""): Promise<string> {
      return vi.waitFor(async () => {
        const serial = await r.shown(name, root);
        if (serial === before) throw new Error("still the certificate of before");
        return serial;
      }, PATIENT);
    },
  };
  return r;
}

test.each(["inside", "outside"] as const)(
  "a hostname gets its certificate and serves HTTPS, with the proxy %s the platform",
  async (proxy) => {
    const r = await rig({ proxy });
    const root = await r.pebble.root();
    await expect(r.shown(NAME, root)).rejects.toThrow();
    expect(await r.add()).toMatchObject({ status: "valid", issuer: expect.stringContaining("Pebble"), failure: null });
    await r.shows(NAME, root);
    // Other names have none, whatever the authority would say.
    await expect(r.shown("other.example.com", root)).rejects.toThrow();
  },
);

/** Where port 80 cannot be reached, the authority verifies the name at port 443. */
async function verifiedAt443(proxy: "inside" | "outside"): Promise<void> {
  const r = await rig({ proxy, challenge: "tls-alpn-01" });
  const root = await r.pebble.root();
  const { signal } = new AbortController();
  const found = await r.manager.check("shop", NAME, signal);
  expect(found.find(({ what }) => what === "port_443")).toMatchObject({ status: "ok" });
  expect(await r.add()).toMatchObject({ status: "valid", challenge: "tls-alpn-01", failure: null });
  const first = await r.shows(NAME, root);
  // Everybody else is served during a renewal, and nobody is shown the answer to it.
  r.clock.aheadMs = 61 * DAY;
  const seen = new Set<string>();
  const over = new AbortController();
  const renewal = r.manager.look().finally(() => over.abort());
  while (!over.signal.aborted) seen.add(await r.shown(NAME, root));
  await renewal;
  expect(r.manager.orders).toEqual({ issued: 2, failed: 0 });
  const second = await r.shows(NAME, root, first);
  expect([...seen].every((serial) => serial === first || serial === second)).toBe(true);
}

test("the authority verifies a name at port 443, with the proxy outside the platform", () => verifiedAt443("outside"));

test("the authority verifies a name at port 443, with the proxy inside the platform", { tags: "again" }, () =>
  verifiedAt443("inside"),
);

test("an authority that is down for the whole window costs no certificate before its end, and everybody is told", {
  tags: "again",
}, async () => {
  const r = await rig();
  await r.add();
  const root = await r.pebble.root();
  const first = await r.shows(NAME, root);
  await r.pebble.stop();
  r.clock.aheadMs = 61 * DAY;
  const view = () => r.manager.get("shop", NAME);
  do {
    await r.manager.look();
    const { failure, status } = view();
    expect(failure?.reason).toMatch(/cannot be reached/);
    expect(await r.shown(NAME, root)).toBe(first);
    if (status === "expired") break;
    r.clock.aheadMs = Date.parse(failure?.next ?? "") - Date.now();
  } while (r.clock.aheadMs < 95 * DAY);
  expect(view().status).toBe("expired");
  expect(view().failure?.attempts).toBeGreaterThan(50);
  expect(r.logged).toContain("a certificate could not be renewed");
  const metrics = await r.registry.metrics();
  expect(metrics).toMatch(/hibernaut_certificates\{status="expired"\} 1/);
  expect(metrics).toMatch(/hibernaut_certificate_failed_attempts\{app="shop",hostname="www.example.com"\} \d\d/);
  for await (const { name, status, found, fix } of diagnose(r.settings)) {
    if (name !== "certificates") continue;
    expect({ status, fix }).toEqual({ status: "warn", fix: "hibernaut certs check www.example.com --app shop" });
    expect(found).toMatch(/1 of 1 could not be had or renewed: www\.example\.com/);
    break;
  }
  // It is back, and has forgotten all accounts. The first order finds that out.
  await r.pebble.start();
  for (let tries = 0; tries < 3 && view().failure !== null; tries += 1) {
    r.clock.aheadMs = Date.parse(view().failure?.next ?? "") - Date.now();
    await r.manager.look();
  }
  expect(view().failure).toBeNull();
  await r.shows(NAME, await r.pebble.root());
});

test("an authority that rejects nonces at random costs retries, and no certificate", { tags: "again" }, async () => {
  const r = await rig({ nonceReject: 30 });
  await r.manager.add("shop", NAME, { agreeToTerms: true, signal: new AbortController().signal });
  await vi.waitFor(async () => {
    const { failure, status } = r.manager.get("shop", NAME);
    if (status === "valid") return;
    if (failure !== null) r.clock.aheadMs = Date.parse(failure.next) - Date.now();
    await r.manager.look();
    throw new Error(`still ${status}: ${failure?.reason}`);
  }, PATIENT);
});

test("a wildcard is proven by the records that the hook adds, and removes", async () => {
  const hook = (txtFile: string) => `#!/bin/sh
set -e
case "$1" in
add) echo "$2 $3" >> ${txtFile} ;;
remove) grep -vF "$2 $3" ${txtFile} > ${txtFile}.new || true; mv ${txtFile}.new ${txtFile} ;;
esac
echo "$1 $2" >> ${txtFile}.calls
`;
  const r = await rig({ hook });
  expect(await r.add("*.example.com")).toMatchObject({ status: "valid", challenge: "dns-01" });
  expect(await readFile(join(r.world.folder, "txt.calls"), "utf8")).toBe(
    "add _acme-challenge.example.com\nremove _acme-challenge.example.com\n",
  );
  expect(await readFile(join(r.world.folder, "txt"), "utf8")).toBe("");
  await r.shows("anything.example.com", await r.pebble.root());
});

test("what is missing is found where it is missing, and an order says why it failed", { tags: "again" }, async () => {
  const r = await rig();
  const { signal } = new AbortController();
  const found = async () =>
    (await r.manager.check("shop", NAME, signal)).map(({ what, status }) => `${what} ${status}`);
  expect(await found()).toEqual(["authority ok", "dns ok", "port_80 ok", "tls ok"]);
  r.dns.missing.add(NAME);
  expect(await found()).toEqual(["authority ok", "dns missing", "tls ok"]);
  expect(await r.add()).toMatchObject({
    status: "failed",
    failure: { attempts: 1, reason: expect.stringContaining(`could not verify ${NAME}`) },
  });
  r.dns.missing.clear();
  expect(await r.add()).toMatchObject({ status: "valid", failure: null });
});

test("an address inside is not asked unless it is said to be the host's", async () => {
  const r = await rig({ publicAddresses: "" });
  const findings = await r.manager.check("shop", NAME, new AbortController().signal);
  expect(findings.find(({ what }) => what === "port_80")).toMatchObject({
    status: "missing",
    found: expect.stringMatching(/leads to 127\.0\.0\.1, .* did not ask there\. .*set HIBERNAUT_PUBLIC_ADDRESSES/),
  });
});

test("a certificate is revoked before it is removed, and stays if the authority does not answer", {
  tags: "again",
}, async () => {
  const r = await rig();
  const other = "other.example.com";
  r.platform.hostnames.add("shop", other);
  await r.add();
  await r.add(other);
  const serial = await r.shows(NAME, await r.pebble.root());
  const { signal } = new AbortController();
  expect(await r.pebble.statusOf(serial)).toBe("Valid");
  await r.manager.remove("shop", NAME, { signal });
  expect(await r.pebble.statusOf(serial)).toBe("Revoked");

  await r.pebble.stop();
  await expect(r.manager.remove("shop", other, { signal })).rejects.toMatchObject({
    code: "unavailable",
    message: expect.stringMatching(/was neither revoked nor removed\..*cannot be reached/),
  });
  expect(r.manager.all()).toMatchObject([{ hostname: other, status: "valid" }]);
});

test("requests below the challenges' path that are not ours reach the app, or nobody", { tags: "again" }, async () => {
  const r = await rig();
  const { proxyListen } = r.settings;
  const response = await fetch(`http://127.0.0.1:${proxyListen.port}/.well-known/acme-challenge/made-up`, {
    headers: { host: NAME },
  });
  expect(response.status).toBe(404);
  expect(await response.json()).toMatchObject({ error: "unknown_host" });
});
