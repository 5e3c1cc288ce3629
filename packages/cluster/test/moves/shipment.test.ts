/**
 * The request that carries a machine, between a real client and a real server of the peer port.
 *
 * @module-tag again
 */
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { mkdir, writeFile } from "node:fs/promises";
import { type AddressInfo, connect, createServer } from "node:net";
import { join } from "node:path";
import { HibernautError } from "@hibernaut/domain/errors";
import { never } from "@hibernaut/lib/async";
import { beforeEach, expect, onTestFinished, test } from "vitest";
import { tempFolder } from "../../../platform/test/helpers/temp.ts";
import { FRAMES, type Frame, framesOf } from "../../src/moves/frames.ts";
import { Rate } from "../../src/moves/rate.ts";
import { serveMoves } from "../../src/moves/routes.ts";
import { type Cargo, Shipment } from "../../src/moves/shipment.ts";
import { peerCall } from "../../src/peer-call.ts";
import { PeerClient } from "../../src/peer-client.ts";
import { PeerServer } from "../../src/peer-server.ts";

const MB = 1024 * 1024;
const ID = "0123456789abcd";
/** A refusal can overtake what is sent, or not: often enough to see both. */
const ATTEMPTS = 20;
const CARGO = {
  ...{ record: { id: ID, snapshot: { generation: "g" } }, epoch: 1, attempt: "one", history: [], volumes: [] },
} as unknown as Cargo;

let folder: string;

beforeEach(async () => {
  folder = await tempFolder("shipment");
  await mkdir(join(folder, "snapshots", "g"), { recursive: true });
  const memory = randomBytes(8 * MB);
  for (const name of ["memory", "snapshots/g/memory", "layer"]) await writeFile(join(folder, name), memory);
  await writeFile(join(folder, "snapshots/g/manifest.json"), "{}");
});

/** Begins to send the machine to a host that does this with the frames. */
async function ship(
  receive: (frames: AsyncGenerator<Frame, void>) => Promise<void>,
  { memory }: { memory: string | undefined },
): Promise<Shipment> {
  const server = new PeerServer();
  const target = {
    fit: () => Promise.resolve({}),
    start: () => {},
    has: () => ({ stores: false }),
    receive: (_id: string, stream: AsyncIterable<Buffer>) => receive(framesOf(stream)),
  };
  server.add((request, response) => serveMoves(target, request, response));
  const port = createServer((socket) => server.accept(socket));
  port.listen(0, "127.0.0.1");
  await once(port, "listening");
  const client = new PeerClient({
    peers: { target: () => ({ host: "127.0.0.1", port: 0, tls: {} }) },
    view: { host: () => undefined, subscribe: () => () => {} },
    service: "peer",
    connect: () => connect((port.address() as AddressInfo).port, "127.0.0.1"),
  });
  const call = peerCall(client);
  const volumes = { root: folder, paths: () => [] };
  const log = { warn: () => {}, info: () => {} };
  const shipment = new Shipment(
    { id: ID, to: "b", from: "a", call, folder, memory, volumes, rate: new Rate(0), log, tell: () => {} },
    never(),
  );
  onTestFinished(() => {
    shipment[Symbol.dispose]();
    client.close();
    server.close();
    port.close();
  });
  return shipment;
}

test("without memory to send before, the request begins anyway, however long the machine takes to rest", async () => {
  const heard = Promise.withResolvers<Frame | void>();
  const types: number[] = [];
  const shipment = await ship(
    async (frames) => {
      for await (const frame of frames) {
        types.push(frame.type);
        heard.resolve(frame);
        if (frame.type === FRAMES.end) return;
      }
    },
    { memory: undefined },
  );
  await heard.promise;
  await shipment.send(CARGO);
  expect(new Set(types)).toEqual(new Set([FRAMES.memory, FRAMES.papers, FRAMES.data, FRAMES.end]));
});

test.each([
  ["at once", FRAMES.memory, 1],
  ["in the middle of the memory", FRAMES.memory, 4],
  ["in the middle of the archive", FRAMES.data, 3],
])("a host that refuses the machine %s is heard", async (_when, type, count) => {
  const refuse = async (frames: AsyncGenerator<Frame, void>) => {
    let seen = 0;
    for (let next = await frames.next(); next.done !== true; next = await frames.next())
      if (next.value.type === type && (seen += 1) === count) break;
    throw new HibernautError("failed_precondition", "The disk is full.");
  };
  for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
    const shipment = await ship(refuse, { memory: "memory" });
    const sent = shipment.precopied.then(() => shipment.send(CARGO));
    await expect(sent).rejects.toMatchObject({ code: "failed_precondition", message: "The disk is full." });
    expect(shipment.broken.reason).toMatchObject({ message: "The disk is full." });
  }
});
