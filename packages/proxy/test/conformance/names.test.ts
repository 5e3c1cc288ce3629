/**
 * Which machine answers for a hostname: awkward ones, the same bytes through our proxy and through HAProxy, which has the
 * rules that an operator would write there. The table says what ours does; where HAProxy does something else, it says why.
 * What the rules alone decide is in `addressing.test.ts`.
 */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { askRaw, NamesWorld } from "./names-world.ts";
import { type Reference, startHaproxy } from "./reference.ts";

const ID = "3f9c01ab22de41";
const OWN = { machine_hostnames: true };

let world: NamesWorld;
let haproxy: Reference;

beforeAll(async () => {
  world = new NamesWorld();
  await world.add({ app: "shop", id: "3f9c01ab22de40", name: "any", service: { machine_hostnames: false } });
  await world.add({ app: "shop", id: ID, name: "anna", service: { ...OWN, placement: "pinned" }, admin: true });
  await world.add({ app: "closed", id: "3f9c01ab22de42", name: "carla" });
  await world.start({ "www.example.com": "shop", "xn--bcher-kva.example": "shop" });
  haproxy = await startHaproxy((port) => rules(world, port));
});
afterAll(async () => {
  await haproxy.stop();
  await world.stop();
});

/** The same names as rules of HAProxy: exact names, without case, the port and the dot of the root. */
function rules({ ports }: NamesWorld, port: number): string {
  const names: Record<string, string[]> = {
    any: ["shop.localhost", "shop.apps.example.org", "www.example.com", "xn--bcher-kva.example"],
    anna: [`anna.shop.localhost`, `${ID}.shop.localhost`, "anna.shop.apps.example.org"],
    "anna-admin": [`${ports.get("anna-admin")}--anna.shop.localhost`],
    carla: ["closed.localhost"],
  };
  const uses = Object.entries(names).map(
    ([backend, hosts]) => `  use_backend ${backend} if { var(txn.name) -m str ${hosts.join(" ")} }`,
  );
  const backends = Object.keys(names).map((name) => `backend ${name}\n  server one 127.0.0.1:${ports.get(name)}\n`);
  return `
global
  nbthread 1
defaults
  mode http
  timeout connect 5s
  timeout client 10s
  timeout server 10s
frontend clients
  bind 127.0.0.1:${port}
  http-request set-var(txn.name) req.hdr(host),host_only,lower,regsub([.]$,)
${uses.join("\n")}
  default_backend nobody
backend nobody
  http-request return status 404
${backends.join("")}`;
}

interface Row {
  /** The value of Host. `{admin}` stands for the port of a second service. */
  host: string;
  /** Status, and the machine that answers or the code of the refusal. */
  ours: string;
  /** What HAProxy does instead, and why ours is right. */
  differs?: [outcome: string, why: string];
}

const row = (host: string, ours: string, differs?: Row["differs"]): Row => ({
  host,
  ours,
  ...(differs && { differs }),
});
const NOT_A_NAME: Row["differs"] = [
  "404",
  "takes anything for a name, and has no rule for it; it is not an authority (RFC 3986 3.2)",
];
const LABEL = "a".repeat(64);

const TABLE: readonly Row[] = [
  row("shop.localhost", "200 any"),
  row("www.example.com", "200 any"),
  row("anna.shop.localhost", "200 anna"),
  row("anna.shop.apps.example.org", "200 anna"),
  row(`${ID}.shop.localhost`, "200 anna"),
  row("{admin}--anna.shop.localhost", "200 anna-admin"),
  row("ANNA.Shop.LOCALHOST", "200 anna"),
  row(`${ID.toUpperCase()}.SHOP.localhost`, "200 anna"),
  row("anna.shop.localhost.", "200 anna"),
  row("anna.shop.localhost:8080", "200 anna"),
  row("anna.shop.localhost.:8080", "200 anna"),
  row("{admin}--anna.shop.localhost:80", "200 anna-admin"),
  row("WWW.EXAMPLE.COM.", "200 any"),
  row("xn--bcher-kva.example", "200 any"),
  row("XN--BCHER-KVA.example", "200 any"),
  row("anna.shop.localhost..", "404 unknown_host"),
  row("..shop.localhost", "400 bad_request", NOT_A_NAME),
  row(".shop.localhost", "400 bad_request", NOT_A_NAME),
  row("anna..localhost", "404 unknown_host"),
  row("anna..shop.localhost", "404 unknown_host"),
  row("anna.shop.localhost.evil.example", "404 unknown_host"),
  row("nobody.shop.localhost", "404 unknown_machine"),
  row("any.shop.localhost", "404 unknown_port"),
  row("carla.closed.localhost", "404 unknown_host"),
  row("{admin}--anna.localhost", "404 unknown_host"),
  row(`${LABEL}.shop.localhost`, "404 unknown_machine"),
  row(`${LABEL}.localhost`, "404 unknown_host"),
  row(`${"a.".repeat(130)}localhost`, "400 bad_request", NOT_A_NAME),
  row("b\xc3\xbccher.example", "400 bad_request", NOT_A_NAME),
  row("anna%2eshop.localhost", "400 bad_request", NOT_A_NAME),
  row("anna.shop.localhost%00", "400 bad_request", NOT_A_NAME),
  row("evil@anna.shop.localhost", "400 bad_request", NOT_A_NAME),
  row("anna.shop.localhost/", "400 bad_request", NOT_A_NAME),
  row("anna.shop.localhost, shop.localhost", "400 bad_request", [
    "200 any",
    "takes the last one of a list; Host is not a list, and others may take the first",
  ]),
  row("anna.shop .localhost", "400 bad_request", NOT_A_NAME),
  row("[anna.shop.localhost]", "400 bad_request", NOT_A_NAME),
  row("anna_1.shop.localhost", "404 unknown_machine"),
  row("127.0.0.1", "404 unknown_host"),
  row("[::1]:8080", "404 unknown_host"),
  row("anna.shop.localhost:", "400 bad_request", [
    "200 anna",
    "takes an empty port; so do RFC 3986 and browsers, which never send one",
  ]),
  row("anna.shop.localhost:99999", "400 bad_request", [
    "200 anna",
    "does not look at the number; there is no such port",
  ]),
  row("anna.shop.localhost:80:80", "400 bad_request", NOT_A_NAME),
  row("anna.shop.localhost:+80", "400 bad_request", [
    "200 anna",
    "does not look at the port; it is digits (RFC 3986 3.2.3)",
  ]),
  row("", "400 bad_request", ["404", "takes an empty name for one without a rule; no app has it"]),
];

const filled = (text: string) => text.replaceAll("{admin}", String(world.ports.get("anna-admin")));
const request = (host: string) => `GET / HTTP/1.1\r\nHost: ${filled(host)}\r\nConnection: close\r\n\r\n`;
/** HAProxy has no codes of ours. */
const plain = (outcome: string) => (outcome.startsWith("200") ? outcome : outcome.slice(0, 3));

describe.each(TABLE)("$host", ({ host, ours, differs }) => {
  test("ours", async () => {
    expect((await askRaw(world.port, request(host))).outcome).toBe(ours);
  });

  test(`HAProxy: ${differs === undefined ? "the same" : differs.join(", as it ")}`, async () => {
    const { outcome } = await askRaw(haproxy.port, request(host));
    expect(plain(outcome)).toBe(differs?.[0] ?? plain(ours));
  });
});

describe("fields that choose a machine", () => {
  const asks = async (host: string, fields: string) =>
    (await askRaw(world.port, `GET / HTTP/1.1\r\nHost: ${host}\r\n${fields}Connection: close\r\n\r\n`)).outcome;

  test.each<[fields: string, host: string, outcome: string]>([
    [`hibernaut-machine:  \t${ID.toUpperCase()} \r\n`, "shop.localhost", "200 anna"],
    ["Fly-Force-Instance-Id: anna\r\n", "www.example.com", "200 anna"],
    ["Hibernaut-Machine: anna\r\nHibernaut-Machine: anna\r\n", "shop.localhost", "200 anna"],
    ["Hibernaut-Machine: anna\r\nHibernaut-Machine: any\r\n", "shop.localhost", "404 unknown_port"],
    ["Hibernaut-Machine: anna, any\r\n", "shop.localhost", "404 unknown_machine"],
    ["Hibernaut-Machine: an\xffna\r\n", "shop.localhost", "404 unknown_machine"],
    ["Hibernaut-Machine: __proto__\r\n", "shop.localhost", "404 unknown_machine"],
    ["Hibernaut-Machine: carla\r\n", "shop.localhost", "404 unknown_machine"],
    ["Hibernaut-Machine: anna\r\n", "closed.localhost", "200 carla"],
    ["Hibernaut-Machine: nobody\r\n", "anna.shop.localhost", "404 unknown_machine"],
    ["Fly-Prefer-Instance-Id: nobody\r\n", "anna.shop.localhost", "200 anna"],
    ["Hibernaut_Machine: anna\r\n", "shop.localhost", "200 any"],
    ["Connection: Hibernaut-Machine\r\nHibernaut-Machine: anna\r\n", "shop.localhost", "200 anna"],
  ])("%j at %s: %s", async (fields, host, outcome) => {
    expect(await asks(host, fields)).toBe(outcome);
  });

  test("do not reach the app", () => {
    expect(world.heads.filter(([, head]) => /^hibernaut-machine:/im.test(head))).toEqual([]);
  });

  test("and a target in absolute form names the machine, whatever Host says", async () => {
    const line = "GET http://anna.shop.localhost:1/a HTTP/1.1\r\nHost: shop.localhost\r\nConnection: close\r\n\r\n";
    expect((await askRaw(world.port, line)).outcome).toBe("200 anna");
    const without = "GET / HTTP/1.1\r\nConnection: close\r\n\r\n";
    expect((await askRaw(world.port, without)).outcome).toBe("400 bad_request");
    const twice = "GET / HTTP/1.1\r\nHost: shop.localhost\r\nHost: anna.shop.localhost\r\nConnection: close\r\n\r\n";
    expect((await askRaw(world.port, twice)).outcome).toBe("400 bad_request");
  });
});
