/** What machines without rules of their own reach, with the real rules and packets: from namespaces in the place of machines. */
import { once } from "node:events";
import { createServer } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { tempFolder } from "../../platform/test/helpers/temp.ts";
import { BridgeNetwork } from "../src/bridge/index.ts";
import { uninstallBridge } from "../src/bridge/remove.ts";
import { type Guest, guestOf, isRoot, markersIn, otherComputer, serverHere, triesHere } from "./rig.ts";

/** TEST-NET-3: no real network uses it. */
const OUTSIDE = { here: "203.0.113.13", there: "203.0.113.14" };
const WEB = 80;
const APP = 8080;
/** Where clouds keep credentials. */
const METADATA = "169.254.169.254";
const [OPEN, REFUSED, UNREACHABLE, SILENCE] = ["open", "ECONNREFUSED", "EHOSTUNREACH", "silence"];

const SERVE = `require("net").createServer().listen(${APP}, () => console.log("ready"))`;
/** Sends a text to port 9000 of an address. */
const TELL = `
  const [text, address] = process.argv.slice(1);
  const socket = require("dgram").createSocket("udp4");
  socket.send(text, 9000, address, () => socket.close());`;

/** A network whose host has a control plane; two machines of the app `shop`, one of `mail`, and a computer outside. */
async function world() {
  const outside = await otherComputer(OUTSIDE, [WEB]);
  const api = await serverHere();
  const dataDir = await tempFolder("isolation");
  onTestFinished(() => uninstallBridge(dataDir));
  const network = await BridgeNetwork.open({ dataDir, subnet: "auto", machines: [], controlPorts: [api], blocked: [] });
  onTestFinished(() => network.close());
  const one = await guestOf(network, { dataDir });
  const sibling = await guestOf(network, { dataDir, number: 2 });
  const stranger = await guestOf(network, { dataDir, number: 3, app: "mail" });
  for (const guest of [one, sibling, stranger]) await guest.start(process.execPath, "-e", SERVE);
  return { network, api, one, sibling, stranger, outside };
}

const app = ({ address }: Guest) => `${address}:${APP}`;

test.skipIf(!isRoot)(
  "a machine reaches its app's machines, services of its host, and the outside: no more",
  async () => {
    const { network, api, one, sibling, stranger } = await world();
    const service = await serverHere();
    const loopback = createServer().listen(0, "127.0.0.1");
    onTestFinished(() => void loopback.close());
    await once(loopback, "listening");
    const { port: local } = loopback.address() as { port: number };

    const of = (...ports: number[]) => ports.map((port) => `${network.gateway}:${port}`);
    const allowed = [app(sibling), ...of(service), `${OUTSIDE.here}:${service}`, `${OUTSIDE.there}:${WEB}`];
    expect(await one.tries(...allowed)).toEqual([OPEN, OPEN, OPEN, OPEN]);
    const kept = [...of(api, local), `${OUTSIDE.here}:${api}`, `${METADATA}:${WEB}`, app(stranger)];
    expect(await one.tries(...kept)).toEqual([REFUSED, REFUSED, REFUSED, UNREACHABLE, SILENCE]);
    expect(await stranger.tries(app(one), app(sibling))).toEqual([SILENCE, SILENCE]);
    // It is the rules that keep machines off: the host reaches all of it.
    expect(await triesHere(app(stranger), ...of(api))).toEqual([OPEN, OPEN]);

    const [beside, elsewhere] = [await markersIn(sibling), await markersIn(stranger)];
    for (const to of [stranger, sibling]) await one.says(process.execPath, "-e", TELL, "marker-datagram", to.address);
    await expect.poll(() => [...beside], { timeout: 10_000 }).toEqual(["marker-datagram"]);
    expect([...elsewhere]).toEqual([]);
  },
);

test.skipIf(!isRoot)("a computer outside reaches no machine, also if it sends its packets to the host", async () => {
  const { network, one, outside } = await world();
  const service = await serverHere();
  await outside.ip(`route add ${network.subnet} via ${OUTSIDE.here}`);
  expect(await outside.tries(`${OUTSIDE.here}:${service}`, app(one))).toEqual([OPEN, SILENCE]);
});
