/** Which fields reach the app and the client, and who is believed about them. */
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { GuestSubnets } from "../../src/http/guest-subnets.ts";
import { Trust } from "../../src/http/trust.ts";
import { CLOSE, headApp, httpApp, parsed, rig } from "./helpers.ts";

/** Answers with the fields it was sent, as they were spelt. */
const mirror = () => httpApp((request, response) => void response.end(JSON.stringify(request.rawHeaders)));

async function fieldsSeen(ask: (request: string) => Promise<string>, fields: string): Promise<[string, string][]> {
  const { body } = parsed(await ask(`GET /p?q HTTP/1.1\r\n${fields}${CLOSE}`));
  const raw = JSON.parse(body) as string[];
  return raw.flatMap((name, at) => (at % 2 === 0 ? [[name, raw[at + 1] ?? ""] as [string, string]] : []));
}

const named = (fields: [string, string][], name: string) =>
  fields.filter(([each]) => each.toLowerCase() === name.toLowerCase()).map(([, value]) => value);

describe("to the app", () => {
  test("a request carries what the client said, and what the proxy knows", async () => {
    const { ask, heads } = await rig({ app: await mirror() });
    const seen = await fieldsSeen(ask, "X-OddCase: a  b\t\r\nCookie: c=d\r\nVia: 1.0 old\r\nX-Odd: 1\r\nX-Odd: 2\r\n");
    expect(seen).toContainEqual(["X-OddCase", "a  b"]);
    expect(named(seen, "x-odd")).toEqual(["1", "2"]);
    expect(named(seen, "host")).toEqual(["shop.test"]);
    expect(named(seen, "x-forwarded-for")).toEqual(["127.0.0.1"]);
    expect(named(seen, "x-forwarded-proto")).toEqual(["http"]);
    expect(named(seen, "x-forwarded-host")).toEqual(["shop.test"]);
    expect(named(seen, "x-forwarded-port")).toEqual(["80"]);
    expect(named(seen, "hibernaut-client-ip")).toEqual(["127.0.0.1"]);
    expect(named(seen, "via")).toEqual(["1.0 old", "1.1 hibernaut"]);
    expect(named(seen, "x-request-id")).toEqual([heads[0]?.requestId]);
    expect(named(seen, "hibernaut-request-id")).toEqual([heads[0]?.requestId]);
  });

  test.each([
    ["hibernaut_session=secret", []],
    ["a=1; hibernaut_session=secret; b=2", ["a=1; b=2"]],
    ["__Host-hibernaut_session=secret;b=2", ["b=2"]],
    ["a=1;  hibernaut_session =secret; hibernaut_session=secret", ["a=1"]],
    ["my_hibernaut_session=own; hibernaut_sessions=2; c=hibernaut_session", null],
    ["a=1; b", null],
  ])("the cookie %s carries no session of the platform", async (cookie, expected) => {
    const { ask } = await rig({ app: await mirror() });
    const seen = await fieldsSeen(ask, `Cookie: ${cookie}\r\n`);
    expect(named(seen, "cookie")).toEqual(expected ?? [cookie]);
  });

  test("a request carries nothing that ends at each hop", async () => {
    const { ask } = await rig({ app: await mirror() });
    const seen = await fieldsSeen(
      ask,
      "Connection: X-Private, keep-alive\r\nX-Private: 1\r\nKeep-Alive: timeout=5\r\nProxy-Connection: close\r\n" +
        "TE: gzip, trailers;q=0.5\r\nProxy: http://evil\r\n",
    );
    for (const name of ["x-private", "keep-alive", "proxy-connection", "proxy"]) expect(named(seen, name)).toEqual([]);
    expect(named(seen, "te")).toEqual(["trailers"]);
    expect(named(seen, "connection")).toEqual(["TE"]);
  });

  test("a request carries nothing that only trusted proxies may say", async () => {
    const { ask, heads } = await rig({ app: await mirror() });
    const seen = await fieldsSeen(
      ask,
      "X-Forwarded-For: 6.6.6.6\r\nx-forwarded-proto: https\r\nX-Forwarded-Server: evil\r\nForwarded: for=6.6.6.6\r\n" +
        "Hibernaut-Client-IP: 6.6.6.6\r\nHIBERNAUT-Other: 6\r\nX_Forwarded_For: 6.6.6.6\r\nHibernaut_Client_IP: 6.6.6.6\r\n" +
        "Hibernaut-Request-Id: evil\r\nFly-Replay-Src: state=evil\r\nfly-replay_src: evil\r\n",
    );
    expect(JSON.stringify(seen)).not.toMatch(/6\.6\.6\.6|evil/);
    expect(named(seen, "x-forwarded-proto")).toEqual(["http"]);
    expect(named(seen, "hibernaut-other")).toEqual([]);
    expect(heads[0]?.clientAddress).toBe("127.0.0.1");
    expect(JSON.stringify(heads[0]?.fields)).not.toContain("6.6.6.6");
  });

  test("a request carries what a trusted proxy says", async () => {
    const { ask, heads, log } = await rig({ app: await mirror(), trustedProxies: ["127.0.0.0/8", "10.0.0.1"] });
    const seen = await fieldsSeen(
      ask,
      "X-Forwarded-For: 6.6.6.6, 9.9.9.9, 10.0.0.1\r\nX-Forwarded-Proto: https\r\nX-Forwarded-Host: front.test\r\n" +
        "X-Forwarded-Port: 443\r\nHibernaut-Request-Id: abc-1\r\nForwarded: for=9.9.9.9\r\n",
    );
    expect(named(seen, "x-forwarded-for")).toEqual(["6.6.6.6, 9.9.9.9, 10.0.0.1, 127.0.0.1"]);
    expect(named(seen, "x-forwarded-proto")).toEqual(["https"]);
    expect(named(seen, "x-forwarded-host")).toEqual(["front.test"]);
    expect(named(seen, "x-forwarded-port")).toEqual(["443"]);
    expect(named(seen, "forwarded")).toEqual(["for=9.9.9.9"]);
    expect(named(seen, "hibernaut-client-ip")).toEqual(["9.9.9.9"]);
    expect(heads).toMatchObject([{ clientAddress: "9.9.9.9", requestId: "abc-1" }]);
    expect(log).toMatchObject([{ clientAddress: "9.9.9.9", requestId: "abc-1" }]);
  });

  test.each([
    ["abc.DEF-123_x:y", true],
    ["", false],
    ["a b", false],
    ["<script>", false],
    ["x".repeat(129), false],
  ])("the id %j of anyone is kept: %s", async (id, kept) => {
    const { ask } = await rig({ app: await mirror() });
    const text = await ask(`GET / HTTP/1.1\r\nX-Request-Id: ${id}\r\n${CLOSE}`);
    const told = parsed(text).headers.get("hibernaut-request-id") ?? "";
    expect(told === id).toBe(kept);
    expect(told).toMatch(/^[\w.:-]{8,128}$/);
    expect(text.split(told)).toHaveLength(4);
  });
});

describe("to the client", () => {
  test("a response carries what the app said, and what the proxy knows", async () => {
    const bytes =
      "HTTP/1.1 299 Quite Fine\r\nSet-Cookie: a=b\r\nSet-Cookie: c=d\r\nX-OddCase: \xe9\r\nHibernaut-Wake: forged\r\n" +
      "Connection: X-Private\r\nX-Private: 1\r\nKeep-Alive: timeout=5\r\nContent-Length: 2\r\n\r\nok";
    const app = await headApp((socket) => socket.write(bytes, "latin1"));
    const { ask } = await rig({
      app,
      leaseFor: async (_request, _signal, lease) => lease({ wake: { kind: "cold", durationMs: 5100.6 } }),
    });
    const text = await ask(`GET / HTTP/1.1\r\n${CLOSE}`);
    expect(text).toMatch(/^HTTP\/1\.1 299 Quite Fine\r\nSet-Cookie: a=b\r\nSet-Cookie: c=d\r\nX-OddCase: \xe9\r\n/);
    const { headers } = parsed(text);
    expect(headers.get("hibernaut-wake")).toBe("cold; dur=5101");
    expect(headers.get("via")).toBe("1.1 hibernaut");
    expect(text).not.toMatch(/forged|X-Private|Keep-Alive/);
  });

  test("a response has the service's headers in place of the app's", async () => {
    const app = await httpApp((_request, response) => {
      response
        .writeHead(200, { Server: "old", "x-frame-options": "ALLOWALL", Link: ["<1>", "<2>"], "X-Own": "1" })
        .end();
    });
    const own = (name: string, ...values: string[]) => ({
      key: name.toLowerCase(),
      fields: values.map((value) => ({ name, key: name.toLowerCase(), value })),
    });
    const ownHeaders = [own("Server"), own("X-Frame-Options", "DENY"), own("Link", "<a>", "<b>"), own("X-New", "2")];
    const { ask } = await rig({ app, leaseFor: async (_request, _signal, lease) => lease({ ownHeaders }) });
    const text = await ask(`GET / HTTP/1.1\r\n${CLOSE}`);
    expect(text).toMatch(/\r\nX-Frame-Options: DENY\r\nLink: <a>\r\nLink: <b>\r\nX-New: 2\r\n/);
    expect(text).toContain("X-Own: 1");
    expect(text).not.toMatch(/Server|ALLOWALL|<1>/);
  });
});

describe("Trust", () => {
  test("knows networks of both families", () => {
    const trust = new Trust(["10.0.0.0/8", "fd00::/8", "::1"]);
    expect(["10.9.8.7", "fd12::1", "::1"].every((address) => trust.has(address))).toBe(true);
    expect(["11.0.0.1", "fe80::1", "", "x"].some((address) => trust.has(address))).toBe(false);
  });

  test.each(["10.0.0.0/99", "nowhere", "10.0.0.0/x"])("refuses %s", (peer) => {
    expect(() => new Trust([peer])).toThrow();
  });

  test("does not extend to machines of any platform on the host, in whatever network they are", () => {
    const routes = [
      "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT",
      "eth0\t00000000\t0101000A\t0003\t0\t0\t0\t00000000\t0\t0\t0",
      "eth0\t0001000A\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0",
      "hib0fb893\t0004D50A\t00000000\t0001\t0\t0\t0\t00FCFFFF\t0\t0\t0",
      "hib00aa11\t00401DAC\t00000000\t0001\t0\t0\t0\t00FCFFFF\t0\t0\t0",
    ].join("\n");
    const trust = new Trust(["10.0.0.0/8", "172.16.0.0/12"], new GuestSubnets(() => routes));
    const guests = ["10.213.4.1", "10.213.7.255", "172.29.64.9"];
    expect(guests.filter((address) => trust.has(address))).toEqual([]);
    const proxies = ["10.0.1.7", "10.213.3.255", "10.213.8.0", "172.29.68.0"];
    expect(proxies.filter((address) => trust.has(address))).toEqual(proxies);
    const field = { name: "X-Forwarded-For", key: "x-forwarded-for", value: "1.1.1.1, 10.213.4.2" };
    expect(trust.clientOf("10.0.1.7", [field])).toBe("10.213.4.2");
  });

  test("is in nobody while it is not known who is a machine, and stays what it was while that cannot be read again", () => {
    let readable = false;
    onTestFinished(() => void vi.restoreAllMocks());
    const guests = new GuestSubnets(() => {
      if (!readable) throw new Error("EMFILE");
      return "";
    });
    expect(guests.has("10.0.0.1")).toBe(true);
    readable = true;
    vi.spyOn(performance, "now").mockReturnValue(performance.now() + 1000);
    expect(guests.has("10.0.0.1")).toBe(false);
    readable = false;
    vi.spyOn(performance, "now").mockReturnValue(performance.now() + 1000);
    expect(guests.has("10.0.0.1")).toBe(false);
  });

  test("stops at an invalid address", () => {
    const trust = new Trust(["10.0.0.0/8"]);
    const field = (value: string) => [{ name: "X-Forwarded-For", key: "x-forwarded-for", value }];
    expect(trust.clientOf("10.0.0.1", field("1.1.1.1, unknown"))).toBe("10.0.0.1");
    expect(trust.clientOf("10.0.0.1", field("1.1.1.1, ::ffff:10.0.0.2"))).toBe("1.1.1.1");
    expect(trust.clientOf("2.2.2.2", field("1.1.1.1"))).toBe("2.2.2.2");
  });
});
