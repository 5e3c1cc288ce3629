/** Apps that share a network, and their own addresses in it, with real rules and packets. */
import { describe, expect, onTestFinished, test } from "vitest";
import { tempFolder } from "../../platform/test/helpers/temp.ts";
import { BridgeNetwork } from "../src/bridge/index.ts";
import { uninstallBridge } from "../src/bridge/remove.ts";
import type { Refused } from "../src/contract.ts";
import { guestOf, isRoot, serverHere } from "./rig.ts";

const [OPEN, REFUSED, SILENCE] = ["open", "ECONNREFUSED", "silence"];
const DB = "198.18.4.2";
const LISTEN = 'require("net").createServer().listen(8080, () => console.log(""))';

async function world() {
  const dataDir = await tempFolder("networks");
  onTestFinished(() => uninstallBridge(dataDir));
  const refused: Refused[] = [];
  const network = await BridgeNetwork.open({
    ...{ dataDir, subnet: "auto", machines: [], controlPorts: [], blocked: [] },
    groupOf: (app) => (app === "other" ? app : "/shop"),
    onRefused: (list) => refused.push(...list),
  });
  onTestFinished(() => network.close());
  return { dataDir, network };
}

describe.skipIf(!isRoot)("apps that share a network", () => {
  test("reach each other's machines on all ports, and those of other apps do not", async () => {
    const { dataDir, network } = await world();
    const web = await guestOf(network, { dataDir, app: "web" });
    const db = await guestOf(network, { dataDir, app: "db", number: 2 });
    const other = await guestOf(network, { dataDir, app: "other", number: 3 });
    await db.start(process.execPath, "-e", LISTEN);
    expect(await web.tries(`${db.address}:8080`)).toEqual([OPEN]);
    expect(await other.tries(`${db.address}:8080`)).toEqual([SILENCE]);
  });

  test("find ports of an app at its own address, where nothing else answers, and nothing is sent outside", async () => {
    const { dataDir, network } = await world();
    const guest = await guestOf(network, { dataDir, app: "web" });
    const other = await guestOf(network, { dataDir, app: "other", number: 2 });
    const service = await serverHere();
    await network.lead([{ network: "shop", address: DB, port: 5432, to: service }]);
    expect(await guest.tries(`${DB}:5432`, `${DB}:5433`, "198.18.4.3:5432")).toEqual([OPEN, REFUSED, REFUSED]);
    expect(await other.tries(`${DB}:5432`), "of another network").toEqual([REFUSED]);
    // Two ways that are the same, and one of a network without a machine, keep nobody from anything.
    const way = { network: "shop", address: DB, port: 80, to: service };
    await network.lead([way, way, { ...way, network: "nobody" }]);
    expect(await guest.tries(`${DB}:5432`, `${DB}:80`)).toEqual([REFUSED, OPEN]);
    await network.lead([]);
    expect(await guest.tries(`${DB}:80`), "nothing of it goes outside").toEqual([REFUSED]);
  });

  test("are reached at their own addresses only, and not past the rules at the host's ports that these lead to", async () => {
    const { dataDir, network } = await world();
    const guest = await guestOf(network, { dataDir, app: "web", egress: { deny: [`${DB}/32`] } });
    const other = await guestOf(network, { dataDir, app: "other", number: 2 });
    const service = await serverHere();
    const gateway = `${network.gateway}:${service}`;
    expect(await other.tries(gateway), "a service of the host like any other").toEqual([OPEN]);
    await network.lead([{ network: "shop", address: DB, port: 5432, to: service }]);
    expect(await guest.tries(`${DB}:5432`, gateway)).toEqual([REFUSED, REFUSED]);
    expect(await other.tries(gateway)).toEqual([REFUSED]);
    const free = await guestOf(network, { dataDir, app: "web", number: 3 });
    expect(await free.tries(`${DB}:5432`, gateway)).toEqual([OPEN, REFUSED]);
  });

  test("keep to the rules for what a machine connects to, which name the app's own address", async () => {
    const { dataDir, network } = await world();
    const closed = await guestOf(network, { dataDir, app: "web", egress: { default: "deny", allow: [`${DB}/32`] } });
    const open = await guestOf(network, { dataDir, app: "web", number: 2, egress: { deny: [`${DB}/32`] } });
    const service = await serverHere();
    const ways = [DB, "198.18.4.3"].map((address) => ({ network: "shop", address, port: 80, to: service }));
    await network.lead(ways);
    const at = ways.map(({ address }) => `${address}:80`);
    expect(await closed.tries(...at), "even HTTP, which is judged by names elsewhere").toEqual([OPEN, REFUSED]);
    expect(await open.tries(...at)).toEqual([REFUSED, OPEN]);
    await closed.govern({ default: "deny", allow: ["192.0.2.1"] });
    expect(await closed.tries(...at)).toEqual([REFUSED, REFUSED]);
  });
});
