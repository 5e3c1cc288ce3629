/**
 * What a guest tries against the control plane of its cluster, with real rules and packets: from a namespace in the place
 * of a machine, against the host and a namespace in the place of another host.
 */
import { expect, onTestFinished, test } from "vitest";
import { tempFolder } from "../../platform/test/helpers/temp.ts";
import { BridgeNetwork } from "../src/bridge/index.ts";
import { uninstallBridge } from "../src/bridge/remove.ts";
import { guestOf, isRoot, otherComputer, serverHere, triesHere } from "./rig.ts";

/** TEST-NET-3: no real network uses it. */
const HOST = "203.0.113.1";
const OTHER = "203.0.113.2";
/** etcd for clients and for its members, a host's peer port, and an app's own service. */
const PORTS = { etcd: 2379, members: 2380, peer: 4290, service: 8080 };

test.skipIf(!isRoot)(
  "reaches neither etcd nor hosts of the cluster, directly or behind its host's address",
  async () => {
    await otherComputer({ here: HOST, there: OTHER }, Object.values(PORTS));
    const [peer, etcd, service] = [await serverHere(), await serverHere(), await serverHere()];
    const dataDir = await tempFolder("control");
    onTestFinished(() => uninstallBridge(dataDir));
    const options = { dataDir, subnet: "auto", machines: [], controlPorts: [peer], blocked: [] };
    const network = await BridgeNetwork.open(options);
    onTestFinished(() => network.close());
    const { tries } = await guestOf(network, { dataDir });
    const at = (...ports: number[]) => ports.map((port) => `${OTHER}:${port}`);
    const control = at(PORTS.etcd, PORTS.members, PORTS.peer);
    // A host alone keeps its machines from nothing of the kind: it is the rules, and not the wiring, that does it.
    expect(await tries(...control)).toEqual(["open", "open", "open"]);

    const endpoint = (text: string) => ({ address: text.split(":")[0] ?? "", port: Number(text.split(":")[1]) });
    const controlAddresses = [...control, `${HOST}:${etcd}`].map(endpoint);
    await network.protect({ controlPorts: [peer], controlAddresses });
    expect(await tries(...control)).toEqual(["ECONNREFUSED", "ECONNREFUSED", "ECONNREFUSED"]);
    // This host's own peer port at each of its addresses, and an etcd that runs on it.
    const { gateway } = network;
    expect(await tries(`${gateway}:${peer}`, `${HOST}:${peer}`, `${HOST}:${etcd}`)).toEqual(
      Array.from({ length: 3 }, () => "ECONNREFUSED"),
    );
    // What is not the cluster's is reached as before.
    expect(await tries(...at(PORTS.service), `${gateway}:${service}`)).toEqual(["open", "open"]);
    // The host itself is not kept from its cluster.
    expect(await triesHere(...control)).toEqual(["open", "open", "open"]);
  },
);
