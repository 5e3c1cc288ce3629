import { X509Certificate } from "node:crypto";
import { once } from "node:events";
import { writeFile } from "node:fs/promises";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { text as read } from "node:stream/consumers";
import { type ConnectionOptions, connect, createServer, type TLSSocket } from "node:tls";
import { makeKey, renewalOf } from "@hibernaut/lib/certificates";
import { expect, it, onTestFinished, vi } from "vitest";
import { HostCertificate } from "../src/certificate.ts";
import { readHome } from "../src/home.ts";
import { makeClusterAuthority, signHost } from "../src/identity.ts";
import { leaveCluster } from "../src/join.ts";
import { readJoinToken, writeJoinToken } from "../src/join-token.ts";
import { KEYS } from "../src/keys.ts";
import type { OpenedCluster } from "../src/open.ts";
import { ALPN, joinAddress, splitAddress } from "../src/peers.ts";
import { deletion } from "../src/stored.ts";
import { joinHost, oneHost, openHost } from "./place.ts";

const DAY_MS = 86_400_000;

async function twoHosts() {
  const { cluster: a, token, settings } = await oneHost();
  const bSettings = await joinHost(await token(), "b");
  const b = await openHost(bSettings);
  await vi.waitFor(() => expect(a.view.host("b")?.up).toBeDefined());
  await vi.waitFor(() => expect(b.view.host("a")?.up).toBeDefined());
  // Says who it takes the other side for, and hangs up.
  a.handle("peer", (socket, from) => socket.end(`hello ${from}`));
  return { a, b, settings, bSettings };
}

/** What the other side says; an error when it hangs up first. */
async function hear({ host, port, tls }: { host: string; port: number; tls: ConnectionOptions }): Promise<string> {
  const socket = connect({ host, port, ...tls });
  onTestFinished(() => void socket.destroy());
  return read(socket);
}

const toPeer = (from: OpenedCluster, host: string) => from.peers.target(host, "peer");

/** The certificate of the only host of a cluster, as its platform looks after it. */
async function certificateOf(
  { dataDir }: { dataDir: string },
  { now = Date.now, renewed = [] }: { now?: () => number; renewed?: string[] } = {},
): Promise<HostCertificate> {
  const certificate = new HostCertificate({
    dataDir,
    home: await readHome(dataDir),
    onRenewed: (identity) => renewed.push(identity.certificate),
    onFault: (error) => expect.fail(String(error)),
    now,
  });
  onTestFinished(() => certificate.close());
  return certificate;
}

it("a host knows which other one is calling", async () => {
  const { b } = await twoHosts();
  expect(await hear(toPeer(b, "a"))).toBe("hello b");
});

it("hangs up on what nobody takes yet, and on services that there are not", async () => {
  const { b } = await twoHosts();
  expect(await hear(b.peers.target("a", "api"))).toBe("");
  const { tls, ...at } = toPeer(b, "a");
  await expect(hear({ ...at, tls: { ...tls, ALPNProtocols: ["h2"] } })).rejects.toThrow();
});

it("says nothing to a program without a certificate, or with one of another authority", async () => {
  const { b } = await twoHosts();
  const { tls, ...at } = toPeer(b, "a");
  const { cert: _none, key: _neither, ...bare } = tls;
  expect(await hear({ ...at, tls: bare })).toBe("");
  const { key, publicKey } = makeKey();
  const cert = await signHost(await makeClusterAuthority("elsewhere"), "b", publicKey);
  expect(await hear({ ...at, tls: { ...tls, cert, key } })).toBe("");
});

it("says nothing to another key that its own authority signed for a member's name", async () => {
  const { b, bSettings } = await twoHosts();
  const { authority } = await readHome(bSettings.dataDir);
  const { key, publicKey } = makeKey();
  const { tls, ...at } = toPeer(b, "a");
  expect(await hear({ ...at, tls: { ...tls, cert: await signHost(authority, "b", publicKey), key } })).toBe("");
});

it("a host that was removed cannot pose as another one, to a member or to a host that joins", async () => {
  const { a, b, bSettings } = await twoHosts();
  const { authority } = await readHome(bSettings.dataDir);
  const { key, publicKey } = makeKey();
  const heard: string[] = [];
  const pair = { cert: `${await signHost(authority, "a", publicKey)}\n${authority.certificate}`, key };
  const impostor = createServer({ ...pair, ALPNProtocols: Object.values(ALPN) }, (socket) =>
    socket.on("error", () => {}).on("data", (data) => heard.push(String(data))),
  ).listen(0, "127.0.0.1");
  onTestFinished(() => void impostor.close());
  await once(impostor, "listening");
  const { port } = impostor.address() as AddressInfo;

  await expect(hear({ ...toPeer(b, "a"), port })).rejects.toThrow("what answers as host a has another key");
  const token = readJoinToken((await a.admin.createToken(3_600_000)).token);
  await expect(joinHost(writeJoinToken({ ...token, peer: `127.0.0.1:${port}` }), "c")).rejects.toMatchObject({
    code: "unauthenticated",
  });
  expect(heard).toEqual([]);
});

it("does not mistake one host for another", async () => {
  const { b } = await twoHosts();
  const { tls, ...at } = toPeer(b, "a");
  await expect(hear({ ...at, tls: { ...tls, servername: "c" } })).rejects.toThrow("does not match certificate");
});

it("hangs up on a host that has left", async () => {
  const { a, b, bSettings } = await twoHosts();
  const target = toPeer(b, "a");
  await b.close();
  // The platform is closed, but its lock is held until the test ends: leave as another administrator would see it.
  await a.admin.remove("b");
  await vi.waitFor(() => expect(a.view.host("b")).toBeUndefined());
  expect(await hear(target)).toBe("");
  await expect(leaveCluster({ settings: bSettings })).rejects.toThrow("Another platform is using");
});

it("hangs up on connections of a host that is removed", async () => {
  const { a, b } = await twoHosts();
  const taken = Promise.withResolvers<TLSSocket>();
  a.handle("api", (socket) => taken.resolve(socket));
  const { host, port, tls } = b.peers.target("a", "api");
  const socket = connect({ host, port, ...tls });
  onTestFinished(() => void socket.destroy());
  const closed = read(socket);
  await taken.promise;
  await a.directory.transact([], [deletion(`${KEYS.members}b`)]);
  expect(await closed).toBe("");
});

it("says that a host is away, or that there is none", async () => {
  const { a, b } = await twoHosts();
  await b.close();
  await vi.waitFor(() => expect(a.view.host("b")?.up).toBeUndefined());
  expect(() => a.peers.target("b", "api")).toThrow("Host b is away");
  expect(() => a.peers.target("c", "api")).toThrow("There is no host c in the cluster");
});

it("renews its certificate after two thirds of its time, with the same key", async () => {
  const { settings } = await oneHost();
  const home = await readHome(settings.dataDir);
  const due = renewalOf(home.identity.certificate);
  const clock = { now: due - 1000 };
  const renewed: string[] = [];
  const certificate = await certificateOf(settings, { now: () => clock.now, renewed });
  await certificate.start();
  expect(renewed).toEqual([]);
  clock.now = due;
  await certificate.renewIfDue();
  const [before, after] = [home.identity.certificate, certificate.identity.certificate].map(
    (pem) => new X509Certificate(pem),
  );
  expect(after?.publicKey.equals(before?.publicKey as never)).toBe(true);
  expect(after?.validToDate.getTime()).toBeGreaterThan(due + 364 * DAY_MS);
  expect((await readHome(settings.dataDir)).identity.certificate).toBe(renewed[0]);
});

it("renews at the start a certificate that expired while the platform was off", async () => {
  const { settings } = await oneHost();
  const home = await readHome(settings.dataDir);
  const { publicKey } = new X509Certificate(home.identity.certificate);
  const pem = String(publicKey.export({ type: "spki", format: "pem" }));
  const old = await signHost(home.authority, "a", pem, Date.now() - 400 * DAY_MS);
  await writeFile(join(settings.dataDir, "cluster/host.crt"), old);
  const certificate = await certificateOf(settings);
  await certificate.start();
  expect(new X509Certificate(certificate.identity.certificate).validToDate.getTime()).toBeGreaterThan(Date.now());
});

it("says that this host's clock is wrong when its certificate is not valid yet", async () => {
  const { settings } = await oneHost();
  const certificate = await certificateOf(settings, { now: () => Date.now() - DAY_MS });
  await expect(certificate.start()).rejects.toMatchObject({
    code: "failed_precondition",
    message: expect.stringMatching(/This host's clock says .* is valid only from .*Set this host's clock/),
  });
});

it.each([
  ["10.0.0.5:4290", "10.0.0.5", 4290],
  ["[fd00::5]:4290", "fd00::5", 4290],
  ["host-b.example:1", "host-b.example", 1],
])("reads and writes the address %s", (text, host, port) => {
  expect(splitAddress(text)).toEqual({ host, port });
  expect(joinAddress({ host, port })).toBe(text);
});
