/** A machine that may reach names: real rules and packets, our name server, the gate, TLS, and a name server outside. */
import { createSocket } from "node:dgram";
import { once } from "node:events";
import { egressOf } from "@hibernaut/domain/egress";
import { makeAuthority, makeKey, sign } from "@hibernaut/lib/certificates";
import { outsideOf } from "@hibernaut/lib/public-addresses";
import packet from "dns-packet";
import { expect, onTestFinished, test } from "vitest";
import { DnsServer } from "../../dns/src/server.ts";
import { BridgeNetwork } from "../../network/src/bridge/index.ts";
import { uninstallBridge } from "../../network/src/bridge/remove.ts";
import { guestOf, isRoot, otherComputer, serverHere } from "../../network/test/rig.ts";
import { openAuthority } from "../../proxy/src/outward/authority.ts";
import { openGate } from "../../proxy/src/outward/gate.ts";
import { reachFrom } from "../../proxy/src/outward/reach.ts";
import { tempFolder } from "./helpers/temp.ts";

/** TEST-NET-3: no real network uses it. */
const GOOD = { here: "203.0.113.33", there: "203.0.113.34" };
const EVIL = { here: "203.0.113.37", there: "203.0.113.38" };
const NAMES: Record<string, string> = {
  "api.example.com": GOOD.there,
  "www.example.com": GOOD.there,
  "evil.example.org": EVIL.there,
  "host.example.com": GOOD.here,
};

/** A name server of the host, which says of all names below rebound.example.com that they are this host. */
async function nameServer(): Promise<number> {
  const socket = createSocket("udp4");
  socket.on("message", (bytes, { port, address }) => {
    const { id = 0, questions = [] } = packet.decode(bytes);
    const name = questions[0]?.name ?? "";
    const data = name.endsWith("rebound.example.com") ? "169.254.169.254" : NAMES[name];
    const answers = data === undefined ? [] : [{ type: "A" as const, name, ttl: 30, data }];
    socket.send(packet.encode({ type: "response", id, questions, answers }), port, address);
  });
  socket.bind(0, "127.0.0.1");
  onTestFinished(() => void socket.close());
  await once(socket, "listening");
  return socket.address().port;
}

/**
 * A TLS server with a name for itself, in a program of its own. It ends no connection, and says who it is at once, or to
 * those who ask by HTTP what it heard.
 */
const TLS = `
const [cert, key, name] = process.argv.slice(1);
const http = require("http").createServer((asked, answer) => answer.end(name + " heard " + (asked.headers.authorization || "nothing")));
require("tls").createServer({ cert, key, ALPNProtocols: ["http/1.1"] }, (socket) => {
  socket.on("error", () => {});
  if (socket.alpnProtocol) http.emit("connection", socket);
  else socket.write("this is " + name);
}).listen(443, "0.0.0.0", () => console.log("ready"));`;

/**
 * What an app does: looks a name up at our name server, and connects to what it finds, or to the address that it is told,
 * with that name. Prints what it hears.
 */
const APP = `
const [server, name, address, port] = process.argv.slice(1);
const resolver = new (require("dns").promises.Resolver)({ timeout: 3000, tries: 1 });
resolver.setServers([server]);
const say = (text) => { console.log(text); process.exit(); };
(async () => {
  const host = address || (await resolver.resolve4(name).catch(({ code }) => say(code)))[0];
  if (port) return require("net").connect(port, host, () => say("open")).on("error", ({ code }) => say(code));
  const socket = require("tls").connect({ host, port: 443, servername: name, rejectUnauthorized: false });
  socket.on("data", (text) => say(String(text))).on("end", () => say("the end")).on("error", ({ code }) => say(code));
})();`;

/** Keeps a connection open, and says when it has ended, in whatever way the kernel gets round to telling it. */
const STREAM = `
const socket = require("tls").connect({ host: process.argv[2], port: 443, servername: process.argv[1], rejectUnauthorized: false });
socket.resume().on("secureConnect", () => console.log("open")).on("error", () => {});
socket.on("close", () => { console.log("closed"); process.exit(); });
setInterval(() => socket.write("."), 50);`;

/** Asks a name over HTTPS, at an address that it is told, or that its name server says, and prints what the server heard. */
const ASK = `
const [server, ca, name, trusting, address] = process.argv.slice(1);
const resolver = new (require("dns").promises.Resolver)({ timeout: 3000, tries: 1 });
resolver.setServers([server]);
const say = (text) => { console.log(text); process.exit(); };
(async () => {
  const host = address || (await resolver.resolve4(name).catch(({ code }) => say(code)))[0];
  const trust = trusting ? { rejectUnauthorized: false } : { ca };
  require("https").get({ host, servername: name, headers: { host: name }, ALPNProtocols: ["http/1.1"], ...trust }, (answer) => {
    let heard = "";
    answer.on("data", (text) => heard += text).on("end", () => say(answer.statusCode === 200 ? heard : String(answer.statusCode)));
  }).on("error", ({ code, message }) => say(code || message)).setTimeout(8000, () => say("silence"));
})();`;

/** A network with our name server and gate, and two computers outside. */
async function names() {
  const dataDir = await tempFolder("egress-names");
  onTestFinished(() => uninstallBridge(dataDir));
  const network = await BridgeNetwork.open({ dataDir, subnet: "auto", machines: [], controlPorts: [], blocked: [] });
  onTestFinished(() => network.close());
  const port = await nameServer();
  const rulesOf = (machine: string) => network.machineAt(machine)?.egress;
  const isOutside = outsideOf([]);
  const refused: string[] = [];
  const dns = await DnsServer.open({
    ...{
      address: network.gateway,
      port: 53,
      zone: { gateway: network.gateway, running: () => [], hasPorts: () => false, neighboursOf: () => undefined },
    },
    nameServers: async () => [{ address: "127.0.0.1", port }],
    policy: {
      rulesOf,
      learn: (...answer) => network.learn(...answer),
      isOutside,
      onRefused: (_machine, name) => void refused.push(`dns ${name}`),
    },
  });
  onTestFinished(() => dns.close());
  const outside = await makeAuthority("outside", 1);
  const authority = openAuthority(dataDir);
  const gate = await openGate({
    address: network.gateway,
    machineAt: (address) => network.machineAt(address),
    reach: reachFrom({ mayLead: isOutside, nameServers: [`127.0.0.1:${port}`] }),
    onRefused: (_machine, { name }) => void refused.push(`tls ${name}`),
    injection: { authority, unseal: (sealed) => ({ authorization: sealed }), authorities: [outside.certificate] },
  });
  onTestFinished(() => gate.close());
  network.onChanged((machine) => gate.changed(machine));
  await network.judge({ gate: gate.ports, dns: true });
  const { key, publicKey } = makeKey();
  const cert = await sign(outside, { name: "names", names: ["*.example.com"], publicKey, days: 1 });
  for (const [cable, name] of [
    [GOOD, "good"],
    [EVIL, "evil"],
  ] as const) {
    const computer = await otherComputer(cable, [22]);
    await computer.start(process.execPath, "-e", TLS, "--", cert, key, name);
  }
  const guest = (rules: Pick<Parameters<typeof guestOf>[1], "egress" | "injected">) =>
    guestOf(network, { dataDir, ...rules });
  return { network, guest, authority, refused };
}

test.skipIf(!isRoot)("a machine that may reach one name reaches it, and nothing in its place", async () => {
  const { network, guest: guestWith, refused } = await names();
  const egress = { default: "deny" as const, allow: ["*.example.com"] };
  const guest = await guestWith({ egress });
  const app = async (name: string, address = "", at = "") =>
    (await guest.says(process.execPath, "-e", APP, network.gateway, name, address, at)).trim();

  expect(egressOf(egress).closed).toBe(true);
  expect(await app("api.example.com", GOOD.there, "22"), "before it was looked up").toBe("ECONNREFUSED");
  expect(await app("api.example.com")).toBe("this is good");
  expect(await app("api.example.com", "", "22")).toBe("open");
  expect(await app("evil.example.org")).toBe("ENOTFOUND");
  // The name that it may reach, at the address of another: it reaches the one that it names.
  expect(await app("api.example.com", EVIL.there)).toBe("this is good");
  // The address that it may reach, with the name of another.
  expect(await app("evil.example.org", GOOD.there)).toMatch(/UNRECOGNIZED_NAME/);
  expect(await app("x.rebound.example.com")).not.toContain("this is");
  // Its owner says that it is this host, at an address that anyone may reach.
  expect(await app("host.example.com", "", String(await serverHere()))).toBe("ECONNREFUSED");
  expect(await app("evil.example.org", EVIL.there, "22")).toBe("ECONNREFUSED");
  // A stream that was allowed ends with the rules that allowed it.
  const stream = await guest.start(process.execPath, "-e", STREAM, "api.example.com", GOOD.there);
  await guest.govern({ default: "deny", allow: ["www.example.com"] });
  expect(await stream.next()).toMatchObject({ value: "closed" });
  // Without a server of ours, the port of name servers is not ours.
  await network.judge({ dns: false });
  expect(await guest.tries(`${network.gateway}:53`)).toEqual(["ECONNREFUSED"]);
  expect(refused).toEqual(["dns evil.example.org", "tls evil.example.org"]);
});

test.skipIf(!isRoot)(
  "what is added to requests to a name is added where all else is open, and nowhere else",
  async () => {
    const { network, guest: guestWith, authority, refused } = await names();
    const guest = await guestWith({ injected: { "api.example.com": "the-secret" } });
    const app = async (...args: string[]) =>
      (await guest.says(process.execPath, "-e", ASK, network.gateway, await authority.certificate(), ...args)).trim();
    expect(await app("api.example.com")).toBe("good heard the-secret");
    expect(await app("www.example.com"), "from the server itself").toBe("UNABLE_TO_VERIFY_LEAF_SIGNATURE");
    expect(await app("www.example.com", "trusting")).toBe("good heard nothing");
    // Another name at an address that is led to the gate.
    expect(await app("www.example.com", "trusting", GOOD.there)).toBe("good heard nothing");
    expect(await app("evil.example.org", "trusting")).toBe("evil heard nothing");
    // Its rules for addresses hold at the gate, too.
    await guest.govern({ deny: [`${GOOD.there}/32`] });
    expect(await app("www.example.com", "trusting", GOOD.there)).toBe("ECONNREFUSED");
    expect(await app("api.example.com")).toMatch(/^502/);
    // That its name was looked up opens no other port of it.
    expect(await guest.tries(`${GOOD.there}:22`)).toEqual(["ECONNREFUSED"]);
    expect(refused).toEqual([]);
  },
);
