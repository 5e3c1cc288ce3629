/** Ordering, renewing and removing certificates, at an authority that fails as the test wants. */
import { readFile, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { AppAddresses } from "@hibernaut/proxy";
import { readSettings } from "@hibernaut/settings";
import { expect, onTestFinished, test, vi } from "vitest";
import { FakeAuthority } from "../../platform/test/helpers/fake-authority.ts";
import { type FakePlatform, newWorld, startPlatform, type World } from "../../platform/test/helpers/fake-world.ts";
import { quietFor } from "../../platform/test/helpers/quiet.ts";
import { AuthorityFault, certificatesFolder } from "../src/contract.ts";
import type { CertificateManager } from "../src/manager.ts";
import { openCertificates } from "../src/open.ts";
import { ORDERS_AT_ONCE } from "../src/orders.ts";

const HOUR = 3_600_000;
const DAY = 24 * HOUR;
/** Only a fault reaches it. */
const PATIENT = { timeout: 20_000 };
const NAME = "www.example.com";

class Rig {
  now = Date.parse("2026-03-01T00:00:00Z");
  readonly authority = new FakeAuthority(() => this.now);
  readonly logged: [message: string, fields: Record<string, unknown>][] = [];
  readonly world: World;
  readonly platform: FakePlatform;
  manager!: CertificateManager;

  constructor(world: World, platform: FakePlatform) {
    this.world = world;
    this.platform = platform;
  }

  /** Starts the certificates of the platform, as after a restart. */
  async restart(environment: Record<string, string> = {}, authority = this.authority): Promise<void> {
    await this.manager?.close();
    const suffixes = ["localhost", "apps.example.net"];
    const addresses = new AppAddresses(this.platform.hostnames, suffixes);
    const log = (fields: Record<string, unknown>, message: string) => void this.logged.push([message, fields]);
    const { manager } = await openCertificates({
      settings: readSettings({
        HIBERNAUT_DATA_DIR: this.world.folder,
        XDG_CONFIG_HOME: this.world.folder,
        ...environment,
      }),
      store: this.world.store.certificates,
      namesOf: (app) => addresses.namesOf(app),
      log: { info: log, warn: log },
      clock: () => new Date(this.now),
      random: () => 0,
      authority,
    });
    this.manager = manager;
  }

  /** Adds a certificate, and waits until its order has ended. */
  async add(name = NAME, app = "shop"): Promise<void> {
    await this.manager.add(app, name, { agreeToTerms: true, signal: new AbortController().signal });
    await this.ended();
  }

  /** Resolves when no order is in progress. */
  async ended(): Promise<void> {
    await vi.waitFor(() => expect(this.authority.open).toBe(0), PATIENT);
    await this.manager.look();
  }

  get() {
    return this.manager.get("shop", NAME);
  }

  file(name = `${NAME}.pem`): string {
    return join(certificatesFolder(this.world.folder), name);
  }
}

async function rig(environment?: Record<string, string>): Promise<Rig> {
  const world = await newWorld();
  const platform = await startPlatform(world);
  const made = new Rig(world, platform);
  onTestFinished(async () => {
    await made.manager.close();
    await platform.close();
    await world.dispose();
  });
  platform.apps.create("shop");
  platform.apps.create("blog");
  platform.hostnames.add("shop", NAME);
  await made.restart(environment);
  return made;
}

test("terms are agreed to once, and not by accident", async () => {
  const r = await rig();
  const { signal } = new AbortController();
  await expect(r.manager.add("shop", NAME, { signal })).rejects.toMatchObject({
    code: "failed_precondition",
    message: expect.stringContaining("hibernaut certs add www.example.com --app shop --agree-terms"),
    details: { terms: "https://authority.test/terms" },
  });
  expect(r.manager.list("shop")).toEqual([]);
  await r.add();
  await expect(r.manager.add("shop", NAME, { signal })).resolves.toMatchObject({ status: "valid" });
});

test("an authority that cannot be reached is told at once, before anything is stored", async () => {
  const r = await rig();
  r.authority.fault = new AuthorityFault("unreachable", "The authority cannot be reached: connect ECONNREFUSED");
  const adding = r.manager.add("shop", NAME, { agreeToTerms: true, signal: new AbortController().signal });
  await expect(adding).rejects.toMatchObject({ code: "unavailable", message: /ECONNREFUSED\. Nothing was added/ });
  expect(r.manager.list("shop")).toEqual([]);
});

test("the key is in a file of the platform's user alone, and in no view", async () => {
  const r = await rig();
  await r.add();
  expect((await stat(r.file())).mode & 0o777).toBe(0o600);
  expect((await stat(certificatesFolder(r.world.folder))).mode & 0o777).toBe(0o700);
  expect(await readFile(r.file(), "utf8")).toContain("PRIVATE KEY");
  expect(JSON.stringify(r.manager.all())).not.toContain("KEY");
  expect(r.get()).toMatchObject({ status: "valid", issuer: "Fake authority", challenge: "http-01", failure: null });
  expect(Date.parse(r.get().notAfter ?? "") - r.now).toBe(90 * DAY);
});

test("a certificate is renewed after two thirds of its lifetime, also by the next platform", async () => {
  const r = await rig();
  await r.add();
  r.now += 56 * DAY;
  await r.manager.look();
  expect(r.authority.ordered).toEqual([NAME]);
  r.now += 4 * DAY;
  await r.restart();
  await r.manager.look();
  expect(r.authority.ordered).toEqual([NAME, NAME]);
  expect(Date.parse(r.get().notAfter ?? "") - r.now).toBe(90 * DAY);
  await r.manager.look();
  expect(r.authority.ordered).toHaveLength(2);
});

test("a renewal that fails leaves the certificate, tries again with growing pauses, and tells", async () => {
  const r = await rig();
  await r.add();
  const before = await readFile(r.file(), "utf8");
  r.authority.fault = new AuthorityFault("refused", "no");
  r.now += 60 * DAY;
  await r.manager.look();
  expect(r.get()).toMatchObject({ status: "overdue", failure: { reason: "no.", attempts: 1 } });
  expect(Date.parse(r.get().failure?.next ?? "") - r.now).toBe(5 * 60_000);
  await r.manager.look();
  expect(r.authority.ordered).toHaveLength(2);
  while (r.get().status === "overdue") {
    r.now = Date.parse(r.get().failure?.next ?? "");
    await r.manager.look();
    expect(await readFile(r.file(), "utf8")).toBe(before);
  }
  expect(r.get()).toMatchObject({ status: "expired" });
  expect(r.authority.ordered.length).toBeGreaterThan(60);
  expect(r.authority.ordered.length).toBeLessThan(90);
  const failures = r.logged.filter(([message]) => message === "a certificate could not be renewed");
  expect(failures).toHaveLength(r.authority.ordered.length - 1);
  expect(failures[0]?.[1]).toMatchObject({ hostname: NAME, app: "shop", reason: "no.", attempts: 1 });
  expect(r.manager.orders).toEqual({ issued: 1, failed: failures.length });
  r.authority.fault = undefined;
  r.now = Date.parse(r.get().failure?.next ?? "");
  await r.manager.look();
  expect(r.get()).toMatchObject({ status: "valid", failure: null });
});

test("adding again repeats a failed order at once, but not against the authority's wish", async () => {
  const r = await rig();
  r.authority.fault = new AuthorityFault("refused", "no address");
  await r.authority.agree();
  await r.add();
  expect(r.get()).toMatchObject({ status: "failed", failure: { attempts: 1 } });
  await r.add();
  expect(r.authority.ordered).toHaveLength(2);
  r.authority.fault = new AuthorityFault("limited", "slow down", { retryAfterMs: 3 * HOUR });
  await r.add();
  expect(r.authority.ordered).toHaveLength(3);
  expect(Date.parse(r.get().failure?.next ?? "") - r.now).toBe(3 * HOUR);
  await r.add();
  expect(r.authority.ordered).toHaveLength(3);
  expect(r.get()).toMatchObject({ failure: { reason: "slow down." } });
});

test("a certificate that cannot be stored counts as failed, with growing pauses", async () => {
  const r = await rig();
  await r.authority.agree();
  await rm(certificatesFolder(r.world.folder), { recursive: true });
  await r.add();
  expect(r.get()).toMatchObject({
    status: "failed",
    failure: { attempts: 1, reason: expect.stringContaining("ENOENT") },
  });
  r.now += HOUR;
  await r.manager.look();
  expect(r.get()).toMatchObject({ status: "failed", failure: { attempts: 2 } });
  await r.restart();
  await r.add();
  expect(r.get()).toMatchObject({ status: "valid", failure: null });
});

test("many names at once are ordered a few at a time", async () => {
  const r = await rig();
  await r.authority.agree();
  const names = Array.from({ length: 50 }, (_, index) => `n${index}.example.com`);
  for (const name of names) r.platform.hostnames.add("shop", name);
  const { promise, resolve } = Promise.withResolvers<void>();
  r.authority.hold = promise;
  const { signal } = new AbortController();
  await Promise.all(names.map((name) => r.manager.add("shop", name, { signal })));
  await vi.waitFor(() => expect(r.authority.open).toBe(ORDERS_AT_ONCE), PATIENT);
  await quietFor(50);
  expect(r.authority.open).toBe(ORDERS_AT_ONCE);
  resolve();
  await vi.waitFor(() => expect(r.manager.all().every(({ status }) => status === "valid")).toBe(true), PATIENT);
  expect(r.authority.mostOpen).toBe(ORDERS_AT_ONCE);
  expect(r.authority.ordered.toSorted()).toEqual(names.toSorted());
});

test("a certificate that the platform cannot revoke stays", async () => {
  const r = await rig();
  await r.authority.agree();
  const { signal } = new AbortController();
  r.authority.hold = new Promise(() => {});
  await r.manager.add("shop", NAME, { signal });
  await expect(r.manager.remove("shop", NAME, { signal })).rejects.toMatchObject({
    code: "failed_precondition",
    message: expect.stringMatching(/none was issued yet\. Nothing was removed/),
  });
  expect(r.manager.all()).toHaveLength(1);
});

test("a certificate that was removed during its order does not come back", async () => {
  const r = await rig();
  await r.authority.agree();
  const { promise, resolve } = Promise.withResolvers<void>();
  r.authority.hold = promise;
  await r.manager.add("shop", NAME, { signal: new AbortController().signal });
  await vi.waitFor(() => expect(r.authority.open).toBe(1), PATIENT);
  await r.manager.remove("shop", NAME);
  resolve();
  await r.ended();
  await expect(stat(r.file())).rejects.toThrow("ENOENT");
  await r.restart();
  expect(r.manager.all()).toEqual([]);
  await expect(r.manager.remove("shop", NAME)).rejects.toMatchObject({ code: "not_found" });
});

test("a shutdown gives an order up without counting it as failed", async () => {
  const r = await rig();
  await r.authority.agree();
  r.authority.hold = new Promise(() => {});
  await r.manager.add("shop", NAME, { signal: new AbortController().signal });
  await vi.waitFor(() => expect(r.authority.open).toBe(1), PATIENT);
  await r.manager.close();
  r.authority.hold = undefined;
  await r.restart();
  expect(r.get()).toMatchObject({ status: "ordering", failure: null });
  await r.manager.look();
  expect(r.get()).toMatchObject({ status: "valid" });
});

test("a name that its app lost is not renewed, and its certificate goes when it has expired", async () => {
  const r = await rig();
  await r.add();
  r.platform.hostnames.remove("shop", NAME);
  await r.manager.look();
  expect(r.get()).toMatchObject({ status: "unused" });
  r.now += 80 * DAY;
  await r.manager.look();
  expect(r.authority.ordered).toHaveLength(1);
  expect(r.get()).toMatchObject({ status: "unused" });
  r.now += 10 * DAY;
  await r.manager.look();
  expect(r.manager.all()).toEqual([]);
  await expect(stat(r.file())).rejects.toThrow("ENOENT");
});

test("a certificate moves with its hostname to another app, and goes with its app", async () => {
  const r = await rig();
  await r.add();
  const { signal } = new AbortController();
  await expect(r.manager.add("blog", NAME, { signal })).rejects.toMatchObject({ code: "failed_precondition" });
  r.platform.hostnames.remove("shop", NAME);
  r.platform.hostnames.add("blog", NAME);
  await r.manager.add("blog", NAME, { signal });
  expect(r.manager.get("blog", NAME)).toMatchObject({ status: "valid", app: "blog" });
  expect(r.manager.list("shop")).toEqual([]);
  await r.platform.apps.delete("blog");
  await r.manager.look();
  expect(r.manager.all()).toEqual([]);
  await expect(stat(r.file())).rejects.toThrow("ENOENT");
});

test("one app has a wildcard, which serves the other apps too", async () => {
  const r = await rig({ HIBERNAUT_ACME_DNS_HOOK: "/bin/true" });
  await r.add("*.apps.example.net");
  expect(r.manager.get("shop", "*.apps.example.net")).toMatchObject({ status: "valid", challenge: "dns-01" });
  expect((await stat(r.file("_.apps.example.net.pem"))).mode & 0o777).toBe(0o600);
  await expect(r.add("*.apps.example.net", "blog")).rejects.toMatchObject({ code: "already_exists" });
  await r.restart();
  expect(r.manager.get("shop", "*.apps.example.net")).toMatchObject({ status: "valid" });
});

test("a wildcard needs a hook, and a hook that fails is told", async () => {
  const r = await rig();
  await expect(r.add("*.example.com")).rejects.toMatchObject({ message: /HIBERNAUT_ACME_DNS_HOOK/ });
  await r.restart({ HIBERNAUT_ACME_DNS_HOOK: "/bin/false" });
  await r.add("*.example.com");
  expect(r.manager.get("shop", "*.example.com").failure?.reason).toMatch(
    /^The DNS hook could not add _acme-challenge\.example\.com: .*code 1/,
  );
  expect(r.logged.map(([message]) => message)).toContain("the DNS hook could not remove a record");
});

test("a damaged file is replaced, and another authority's certificate too", async () => {
  const r = await rig();
  await r.add();
  await r.manager.close();
  await writeFile(r.file(), "half a certific");
  await r.restart();
  expect(r.get()).toMatchObject({ status: "ordering" });
  await r.manager.look();
  expect(r.get()).toMatchObject({ status: "valid" });
  const other = new FakeAuthority(() => r.now, "https://other.test/directory");
  await other.agree();
  await r.restart({}, other);
  await r.manager.look();
  expect(other.ordered).toEqual([NAME]);
});
