/** The name server, queried over real sockets on the loopback interface. */
import type * as Dgram from "node:dgram";
import { createSocket } from "node:dgram";
import { type EventEmitter, once } from "node:events";
import { connect } from "node:net";
import { egressOf } from "@hibernaut/domain/egress";
import { faultCounts } from "@hibernaut/lib/background";
import { isPublicAddress } from "@hibernaut/lib/public-addresses";
import packet, { type DecodedPacket, type RecordType } from "dns-packet";
import fc from "fast-check";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { answers, forUdp, parseQuery, Rcode, reply } from "../../dns/src/messages.ts";
import type { NamePolicy } from "../../dns/src/policy.ts";
import { Quota } from "../../dns/src/quota.ts";
import { DnsServer } from "../../dns/src/server.ts";
import { TcpMessages, tcpMessage } from "../../dns/src/tcp.ts";
import { type NameServer, parseResolvConf } from "../../dns/src/upstream.ts";
import { lookUp, type Zone } from "../../dns/src/zone.ts";

/** Every UDP socket that was made; a server's is the first of its test. */
const openSockets = vi.hoisted((): EventEmitter[] => []);
vi.mock("node:dgram", async (original) => {
  const dgram = await original<typeof Dgram>();
  const open = (...args: Parameters<typeof dgram.createSocket>) => {
    const socket = dgram.createSocket(...args);
    openSockets.push(socket);
    return socket;
  };
  return { ...dgram, createSocket: open };
});

/** A machine of the network in which `shop` is called `front`, and the worker has no service. */
const IN_NETWORK = "10.213.0.77";

const ZONE: Zone = {
  neighboursOf: (asker) =>
    asker !== IN_NETWORK
      ? undefined
      : {
          find: (name) =>
            ["shop", "front", "my_shop.local"].includes(name)
              ? { app: "shop", address: "198.18.0.5" }
              : name === "worker"
                ? { app: "asleep" }
                : undefined,
        },
  gateway: "10.213.0.1",
  hasPorts: (app) => app === "shop",
  running: (app) =>
    ({
      shop: [
        { id: "aa", address: "10.213.0.5" },
        { id: "bb", address: "10.213.0.6" },
      ],
      asleep: [],
      crowd: Array.from({ length: 200 }, (_, index) => ({ id: `m${index}`, address: `10.213.1.${index}` })),
    })[app],
};

const query = (name: string, type: RecordType = "A", id = 7) =>
  packet.encode({ type: "query", id, flags: packet.RECURSION_DESIRED, questions: [{ type, name }] });

async function overUdp(port: number, bytes: Buffer): Promise<DecodedPacket> {
  const socket = createSocket("udp4");
  try {
    socket.send(bytes, port, "127.0.0.1");
    const [message] = (await once(socket, "message", { signal: AbortSignal.timeout(5000) })) as [Buffer];
    return packet.decode(message);
  } finally {
    socket.close();
  }
}

async function overTcp(port: number, ...queries: Buffer[]): Promise<DecodedPacket[]> {
  const socket = connect(port, "127.0.0.1");
  const messages = new TcpMessages();
  const found: DecodedPacket[] = [];
  for (const bytes of queries) socket.write(tcpMessage(bytes));
  for await (const chunk of socket) {
    found.push(...messages.push(chunk as Buffer).map((message) => packet.decode(message)));
    if (found.length === queries.length) break;
  }
  return found;
}

async function serve(nameServers: NameServer[] = [], policy?: NamePolicy): Promise<DnsServer> {
  const server = await DnsServer.open({
    address: "127.0.0.1",
    port: 0,
    zone: ZONE,
    nameServers: async () => nameServers,
    ...(policy && { policy }),
  });
  onTestFinished(() => server.close());
  return server;
}

/** A name server that answers with one address, after a forged reply with another id. */
async function upstream(address = "192.0.2.9"): Promise<NameServer> {
  const respond = (bytes: Buffer): Buffer => {
    const { id, questions = [] } = packet.decode(bytes);
    const record = { type: "A" as const, name: questions[0]?.name ?? "", ttl: 60, data: address };
    return packet.encode({ type: "response", id, questions, answers: [record] });
  };
  const socket = createSocket("udp4");
  socket.on("message", (bytes, { port, address: client }) => {
    const forged = respond(bytes);
    forged.writeUInt16BE(forged.readUInt16BE(0) ^ 1, 0);
    forged.writeUInt8(66, forged.length - 1);
    socket.send(forged, port, client);
    socket.send(respond(bytes), port, client);
  });
  socket.bind(0, "127.0.0.1");
  await once(socket, "listening");
  onTestFinished(() => void socket.close());
  return { address: "127.0.0.1", port: socket.address().port };
}

const data = ({ answers: found = [] }: DecodedPacket) => found.map((record) => "data" in record && record.data);
const rcode = (response: DecodedPacket) => (response as unknown as { rcode: string }).rcode;

test("names: apps, machines, the host, and nothing else below .internal", () => {
  expect(lookUp(ZONE, "shop.internal", "10.213.0.9")).toEqual(["10.213.0.5", "10.213.0.6"]);
  expect(lookUp(ZONE, "SHOP.Internal.", "10.213.0.9")).toEqual(["10.213.0.5", "10.213.0.6"]);
  expect(lookUp(ZONE, "asleep.internal", "10.213.0.9")).toEqual([]);
  expect(lookUp(ZONE, "bb.vm.shop.internal", "10.213.0.9")).toEqual(["10.213.0.6"]);
  expect(lookUp(ZONE, "host.hibernaut.internal", "10.213.0.9")).toEqual(["10.213.0.1"]);
  expect(lookUp(ZONE, "Shop.flycast", "10.213.0.9"), "the proxy, which wakes it").toEqual(["10.213.0.1"]);
  for (const name of ["asleep.flycast", "flycast", "a.shop.flycast"])
    expect(lookUp(ZONE, name, "10.213.0.9"), name).toBeUndefined();
  for (const name of ["nobody.internal", "internal", "cc.vm.shop.internal", "a.shop.internal", "x.vm.nobody.internal"])
    expect(lookUp(ZONE, name, "10.213.0.9"), name).toBeUndefined();
  for (const name of ["example.com", "shop.internal.example.com", "", "."])
    expect(lookUp(ZONE, name, "10.213.0.9"), name).toBe("elsewhere");
});

test("names: in a network, what its apps are called leads to where a connection wakes them, for its machines alone", () => {
  for (const name of ["shop", "FRONT.", "my_shop.local", "shop.flycast", "front.flycast"])
    expect(lookUp(ZONE, name, IN_NETWORK), name).toEqual(["198.18.0.5"]);
  expect(lookUp(ZONE, "worker", IN_NETWORK), "running machines of an app without a service").toEqual([]);
  expect(lookUp(ZONE, "shop.internal", IN_NETWORK), "the machines, as everywhere").toEqual([
    "10.213.0.5",
    "10.213.0.6",
  ]);
  for (const name of ["shop", "front"]) expect(lookUp(ZONE, name, "10.213.0.9"), name).toBe("elsewhere");
  expect(lookUp(ZONE, "shop.flycast", "10.213.0.9")).toEqual(["10.213.0.1"]);
  expect(lookUp(ZONE, "example.com", IN_NETWORK)).toBe("elsewhere");
});

describe("the server answers for .internal", () => {
  test("over UDP and TCP", async () => {
    const { port } = await serve();
    const response = await overUdp(port, query("shop.internal"));
    expect(data(response)).toEqual(["10.213.0.5", "10.213.0.6"]);
    expect(response).toMatchObject({ id: 7, flag_aa: true, flag_ra: true, flag_tc: false });
    const [first, second] = await overTcp(port, query("shop.internal", "A", 1), query("none.internal", "A", 2));
    expect(first).toMatchObject({ id: 1, answers: [{ ttl: 5 }, { ttl: 5 }] });
    expect(second).toMatchObject({ id: 2, answers: [] });
    expect(rcode(second as DecodedPacket)).toBe("NXDOMAIN");
  });

  test("and questions from port 0, which has no way back, whole or damaged, end nothing and fail nowhere", async () => {
    const { port } = await serve();
    // No socket of the host can send from port 0, but a guest with raw sockets can: the kernel hands it over like this.
    const received = openSockets.at(-1);
    const before = { ...faultCounts() };
    const question = query("shop.internal");
    const damage = fc.tuple(fc.nat(question.length), fc.nat(question.length - 1), fc.nat(255));
    fc.assert(
      fc.property(damage, ([length, at, byte]) => {
        const bytes = Buffer.from(question.subarray(0, length));
        if (at < length) bytes[at] = byte;
        received?.emit("message", bytes, { address: "127.0.0.1", port: 0, family: "IPv4", size: length });
      }),
      { numRuns: 2000, examples: [[[question.length, 0, question[0] ?? 0]]] },
    );
    expect(data(await overUdp(port, question))).toEqual(["10.213.0.5", "10.213.0.6"]);
    expect(faultCounts()).toEqual(before);
  });

  test.each(["AAAA", "MX", "UNKNOWN_65"] as RecordType[])(
    "%s of an existing name: an empty answer without an error",
    async (type) => {
      const { port } = await serve();
      const response = await overUdp(port, query("shop.internal", type));
      expect([rcode(response), data(response)]).toEqual(["NOERROR", []]);
    },
  );

  test("over TCP when the answer is too long for UDP", async () => {
    const { port } = await serve();
    expect(await overUdp(port, query("crowd.internal"))).toMatchObject({ flag_tc: true, answers: [] });
    const [whole] = await overTcp(port, query("crowd.internal"));
    expect(whole?.answers).toHaveLength(200);
  });

  test("with a code when the question is malformed, and not at all when it is a reply", async () => {
    const { port } = await serve();
    const cut = query("shop.internal").subarray(0, 20);
    expect(rcode(await overUdp(port, cut))).toBe("FORMERR");
    const notify = query("shop.internal");
    notify.writeUInt8(0x20, 2);
    expect(rcode(await overUdp(port, notify))).toBe("NOTIMP");
    expect(parseQuery(packet.encode({ type: "response", id: 1, questions: [] }))).toBeUndefined();
  });
});

describe("everything else is passed on to the host's name servers", () => {
  test("and a forged reply is ignored", async () => {
    const { port } = await serve([await upstream()]);
    const response = await overUdp(port, query("example.com", "A", 99));
    expect(response.id).toBe(99);
    expect(data(response)).toEqual(["192.0.2.9"]);
  });

  test("over TCP when the client uses TCP", async () => {
    const inner = await serve();
    const { port } = await serve([{ address: "127.0.0.1", port: inner.port }]);
    // The inner server has no server to ask and says so; the test sees that this is passed on.
    const [response] = await overTcp(port, query("example.com", "A", 5));
    expect(response?.id).toBe(5);
    expect(rcode(response as DecodedPacket)).toBe("SERVFAIL");
  });

  test("and a server that does not listen is skipped; without any server the answer is a failure, at once", async () => {
    const closed = await serve();
    await closed.close();
    const { port } = await serve([{ address: "127.0.0.1", port: 9 }, await upstream()]);
    expect(data(await overUdp(port, query("example.com")))).toEqual(["192.0.2.9"]);
    expect(rcode(await overUdp((await serve()).port, query("example.com")))).toBe("SERVFAIL");
  });
});

test("one client cannot use up the whole quota", () => {
  const quota = new Quota({ total: 3, perClient: 2 });
  expect([quota.take("a"), quota.take("a"), quota.take("a"), quota.take("b"), quota.take("c")]).toEqual([
    true,
    true,
    false,
    true,
    false,
  ]);
  quota.giveBack("a");
  expect(quota.take("c")).toBe(true);
});

test("resolv.conf is read for name servers and nothing else", () => {
  const text =
    "# nameserver 1.1.1.1\nsearch a b\nnameserver 192.0.2.53\n nameserver 2001:db8::1 \nnameserver nonsense\n";
  expect(parseResolvConf(text).map(({ address }) => address)).toEqual(["192.0.2.53", "2001:db8::1"]);
});

describe("any bytes", () => {
  const bytes = fc.uint8Array({ maxLength: 80 }).map((array) => Buffer.from(array));

  test("never make the parser throw, and every refusal is a valid message", () => {
    fc.assert(
      fc.property(bytes, (message) => {
        const parsed = parseQuery(message);
        if (typeof parsed !== "number") return;
        const { id, type } = packet.decode(reply(message, Rcode.formatError));
        expect([id, type]).toEqual([message.readUInt16BE(0), "response"]);
      }),
    );
  });

  test("are not an answer to another question", () => {
    const asked = query("example.com", "A", 3);
    expect(answers(asked, reply(asked, Rcode.serverFailure))).toBe(true);
    fc.assert(fc.property(bytes, (message) => !answers(asked, message)));
  });

  test("come out of a stream as they went in, no matter where it is cut", () => {
    fc.assert(
      fc.property(fc.array(bytes, { maxLength: 5 }), fc.integer({ min: 1, max: 7 }), (sent, step) => {
        const stream = Buffer.concat(sent.map(tcpMessage));
        const messages = new TcpMessages();
        const found: Buffer[] = [];
        for (let at = 0; at < stream.length; at += step) found.push(...messages.push(stream.subarray(at, at + step)));
        expect(found.map(String)).toEqual(sent.map(String));
      }),
    );
  });

  test("a truncated reply keeps its question and says that it is truncated", () => {
    const long = packet.encode({
      type: "response",
      id: 4,
      questions: [{ type: "A", name: "crowd.internal" }],
      answers: Array.from({ length: 99 }, () => ({ type: "A" as const, name: "crowd.internal", data: "10.0.0.1" })),
    });
    const cut = packet.decode(forUdp(long, 512));
    expect(cut).toMatchObject({ id: 4, flag_tc: true, answers: [], questions: [{ name: "crowd.internal" }] });
    expect(forUdp(long, 65_535)).toBe(long);
  });
});

describe("a machine with rules for names", () => {
  const RULES = egressOf({ default: "deny", allow: ["*.example.com", "shop.internal"] });

  /** The server of such a machine, in front of one that has this address for all names. */
  async function governed(address: string, { learns = true } = {}) {
    const learnt: unknown[] = [];
    const refused: string[] = [];
    const { port } = await serve([await upstream(address)], {
      rulesOf: () => RULES,
      isOutside: isPublicAddress,
      learn: async (_machine, _rules, found) => {
        learnt.push(...found);
        return learns;
      },
      onRefused: (_machine, name) => void refused.push(name),
    });
    return { port, learnt, refused };
  }

  test("is told that other names do not exist, and nobody else hears its question", async () => {
    const { port, learnt, refused } = await governed("192.0.2.1");
    // What it asks for could be what it wants to get out.
    for (const name of ["c2VjcmV0.evil.org", "example.com", "bb.vm.shop.internal"])
      expect(rcode(await overUdp(port, query(name)))).toBe("NXDOMAIN");
    expect(learnt).toEqual([]);
    expect(refused).toEqual(["c2VjcmV0.evil.org", "example.com", "bb.vm.shop.internal"]);
  });

  test("may reach what the answer says before it hears it, also siblings, for which the name is its own", async () => {
    const { port, learnt } = await governed("192.0.2.1");
    expect(data(await overUdp(port, query("Api.Example.com")))).toEqual(["192.0.2.1"]);
    expect(data(await overUdp(port, query("shop.internal")))).toEqual(["10.213.0.5", "10.213.0.6"]);
    expect(learnt).toEqual([
      { address: "192.0.2.1", ttlS: 60 },
      { address: "10.213.0.5", ttlS: 5 },
      { address: "10.213.0.6", ttlS: 5 },
    ]);
  });

  test.each(["127.0.0.1", "10.213.0.1", "169.254.169.254", "192.168.1.1"])(
    "does not reach %s because the owner of a name says that it is there",
    async (address) => {
      const { port, learnt } = await governed(address);
      await overUdp(port, query("rebound.example.com"));
      expect(learnt).toEqual([]);
    },
  );

  test("hears nothing that it may not reach", async () => {
    const { port } = await governed("192.0.2.1", { learns: false });
    const response = await overUdp(port, query("one.too.many.example.com"));
    expect([rcode(response), data(response)]).toEqual(["SERVFAIL", []]);
  });
});
