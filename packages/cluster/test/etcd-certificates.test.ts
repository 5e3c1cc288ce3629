/** A cluster whose etcd has certificates on both sides, which `hibernaut cluster init` made. */
import { X509Certificate } from "node:crypto";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { request } from "node:https";
import { createServer } from "node:net";
import { join } from "node:path";
import { expect, it, onTestFinished, vi } from "vitest";
import { freePort } from "../../../scripts/lib/free-port.mjs";
import { tempFolder } from "../../platform/test/helpers/temp.ts";
import { guardOf } from "../src/etcd/guard.ts";
import { argumentsOf, membersOf } from "../src/etcd/members.ts";
import { type DirectoryPlace, readHome } from "../src/home.ts";
import { initCluster } from "../src/join.ts";
import { changeEtcd } from "../src/repairs.ts";
import { EtcdMember } from "./etcd.ts";
import { bareHost, joinHost, openHost, pointAt, sharedPlace } from "./place.ts";

/** Only a fault reaches it. */
const START_MS = 30_000;

/** The only host of a cluster that has its directory there. */
async function hostOf(directory: DirectoryPlace) {
  const settings = await bareHost();
  await initCluster({ settings, name: "a", peer: "127.0.0.1", directory: await sharedPlace() });
  pointAt(join(settings.dataDir, "cluster"), directory);
  return settings;
}

it("an administrator gets certificates for etcd and how to start it, and hosts agree through it", async () => {
  const settings = await bareHost();
  const url = `https://127.0.0.1:${await pairOfPorts()}`;
  const init = () =>
    initCluster({ settings, name: "a", peer: "127.0.0.1", directory: { etcd: [url] }, etcdCertificates: true });
  const message = await init().then(
    () => "",
    (error: Error) => error.message,
  );
  expect(message).toContain("Copy the directory of each member to its server, and start the member there");
  const [, command = ""] = /\n\netcd (--name=e1 [^]*)\n\nThen run this command again\.$/.exec(message) ?? [];
  const member = new EtcdMember(url, [
    ...command.split(/ \\\n {2}/),
    `--data-dir=${await tempFolder()}`,
    "--log-level=error",
  ]);
  onTestFinished(() => member.kill());
  member.start();
  // The same command finds the certificates that etcd has by now.
  const made = await vi.waitFor(init, { timeout: START_MS, interval: 200 });
  expect(made).toMatchObject({ host: "a", directory: `etcd at ${url}` });

  const a = await openHost(settings);
  await vi.waitFor(() => expect(a.view.host("a")?.up).toBeDefined());
  await openHost(await joinHost((await a.admin.createToken(3_600_000)).token, "b"));
  await vi.waitFor(() => expect(a.view.host("b")?.up).toBeDefined());
  const ca = readFileSync(join(settings.dataDir, "etcd/ca.crt"), "utf8");
  await expect(readKeys(url, ca)).rejects.toThrow();
});

it("certificates that a removed host has are replaced, on one host and then on the others", async () => {
  const etcd = ["https://10.0.0.1:2379"];
  const settings = await hostOf({ etcd });
  const { start } = await changeEtcd({ settings, renew: true });
  expect(start).toContain("etcd --name=e1");
  const read = (name: string) => readFileSync(join(settings.dataDir, "etcd/hosts", name), "utf8");
  const [ca, cert, key] = [read("ca.crt"), read("host.crt"), read("host.key")];
  const made = { etcd, tls: { ca, cert, key } };
  expect(await readHome(settings.dataDir)).toMatchObject({ host: "a", directory: made });
  expect(new X509Certificate(cert).verify(new X509Certificate(ca).publicKey)).toBe(true);
  await changeEtcd({ settings, tls: { ca: "other" }, etcd: ["https://e1:2379"] });
  expect((await readHome(settings.dataDir)).directory).toEqual({ etcd: ["https://e1:2379"], tls: { ca: "other" } });
});

it("an etcd that the whole network can write to is refused, unless an administrator allows it", async () => {
  const etcd = ["http://192.0.2.1:2379"];
  await expect(initCluster({ settings: await bareHost(), name: "a", directory: { etcd } })).rejects.toMatchObject({
    code: "failed_precondition",
    message: expect.stringMatching(
      /http:\/\/192\.0\.2\.1:2379 is not encrypted.*client certificates.*--insecure-etcd/s,
    ),
  });
  // Made by an earlier version.
  await expect(openHost(await hostOf({ etcd }))).rejects.toThrow("HIBERNAUT_INSECURE_ETCD=on");
});

it("doctor says how well etcd is guarded", () => {
  const tls = { ca: "x", cert: "x", key: "x" };
  expect(guardOf({ etcd: ["https://e1:2379"], tls })).toMatchObject({ guarded: true });
  expect(guardOf({ etcd: ["https://e1:2379"], tls: { ca: "x" } })).toMatchObject({ guarded: false });
  expect(guardOf({ etcd: ["http://10.0.0.1:2379"], insecure: true })).toMatchObject({ guarded: false });
  for (const host of ["127.0.0.1", "localhost", "[::1]"])
    expect(guardOf({ etcd: [`http://${host}:2379`] }), host).toMatchObject({ guarded: true });
  for (const host of ["0.0.0.0", "localhost.example.com", "127.example.com"])
    expect(guardOf({ etcd: [`http://${host}:2379`] }), host).toMatchObject({ guarded: false });
});

it("each member listens at its own address, and all know each other", () => {
  const all = membersOf(["https://10.0.0.1:2379", "https://e2.example.com:2379", "https://[fd00::3]:2379"]);
  const commands = all.map((member) => argumentsOf(member, all, `/etc/etcd/${member.name}`).join(" "));
  const peers = "e1=https://10.0.0.1:2380,e2=https://e2.example.com:2380,e3=https://[fd00::3]:2380";
  for (const command of commands) expect(command).toContain(`--initial-cluster=${peers}`);
  expect(commands[0]).toContain("--cert-file=/etc/etcd/e1/member.crt");
  expect(commands[1]).toContain("--listen-client-urls=https://0.0.0.0:2379");
  expect(commands[2]).toContain("--listen-client-urls=https://[fd00::3]:2379");
});

/** A free port whose next one is free as well, for the other members. */
async function pairOfPorts(): Promise<number> {
  for (;;) {
    const port = await freePort();
    const next = createServer().listen(port + 1, "127.0.0.1");
    const free = await once(next, "listening").then(
      () => true,
      () => false,
    );
    next.close();
    if (free) return port;
  }
}

/** What a program without a certificate of a host gets to read. */
async function readKeys(url: string, ca: string): Promise<unknown> {
  const sent = request(new URL("/v3/kv/range", url), { method: "POST", ca, agent: false });
  sent.end(JSON.stringify({ key: "AA==", range_end: "AA==" }));
  const [reply] = await once(sent, "response");
  return reply;
}
