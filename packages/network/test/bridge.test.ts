/** What the bridge network tells the kernel, as text, without root. */
import { formatSubnet, overlap, parseSubnet, type Subnet, size } from "@hibernaut/lib/ipv4";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { forwardingEntry, gatewayMac, tapSettings } from "../src/bridge/links.ts";
import { namesFor, tapHost, tapName } from "../src/bridge/names.ts";
import { noRuleset, type Port, rulesetOf } from "../src/bridge/ruleset.ts";
import { addressOf, chooseSubnet, machineHost, occupant } from "../src/bridge/subnet.ts";
import { macOf } from "../src/mac.ts";

const names = namesFor("/var/lib/hibernaut");
const subnet = parse("10.213.0.0/22");

function parse(text: string): Subnet {
  const parsed = parseSubnet(text);
  if (parsed === undefined) throw new Error(text);
  return parsed;
}

/** Machines with distinct addresses, in a few apps. */
const machines = fc
  .uniqueArray(fc.tuple(fc.integer({ min: 2, max: 1022 }), fc.constantFrom("shop", "mail", "wiki")), {
    selector: ([host]) => host,
    maxLength: 40,
  })
  .map((all) =>
    all.map(([host, app]): Port => {
      const id = host.toString(16).padStart(14, "0");
      return { tap: tapName(names, host), mac: macOf(id), address: addressOf(subnet, host), group: app };
    }),
  );

/** The elements of a set or map of the bridge table. */
function elements(ruleset: string, set: string): string[] {
  const [, block = ""] = new RegExp(`(?:set|map) ${set} \\{([^]*?)\\n  \\}`).exec(ruleset) ?? [];
  return /elements = \{ (.*) \}/.exec(block)?.[1]?.split(", ") ?? [];
}

describe("rules", () => {
  const rules = (ports: Port[], controlPorts: number[] = [], blocked: string[] = []) =>
    rulesetOf({ names, subnet, ports, ways: [], controlPorts, controlAddresses: [], blocked });

  test("only the machines may send, each with its own addresses", () => {
    fc.assert(
      fc.property(machines, (ports) => {
        const found = elements(rules(ports), "senders");
        expect(found).toEqual(ports.map(({ tap, mac, address }) => `"${tap}" . ${mac} . ${address}`));
      }),
    );
  });

  test("two machines reach each other if and only if they belong to one app", () => {
    fc.assert(
      fc.property(machines, (ports) => {
        const text = rules(ports);
        const numbers = new Map(elements(text, "group_of_tap").map((line) => line.split(" : ") as [string, string]));
        const members = new Set(elements(text, "taps_of_group"));
        for (const from of ports)
          for (const to of ports)
            expect(members.has(`"${to.tap}" . ${numbers.get(`"${from.tap}"`)}`)).toBe(from.group === to.group);
        expect(members.size).toBe(ports.length);
      }),
    );
  });

  test("refuse what clouds keep credentials at, and what a setting names, but nothing in the machines' own subnet", () => {
    const refused = (blocked: string[]) =>
      rules([], [], blocked)
        .split("\n")
        .filter((line) => line.includes("type admin-prohibited"))
        .map((line) => /ip daddr != (\S+) ip daddr (\S+) /.exec(line)?.slice(1));
    const own = formatSubnet(subnet);
    const always = ["169.254.0.0/16", "168.63.129.16/32", "100.100.100.200/32"].map((network) => [own, network]);
    expect(refused([])).toEqual(always);
    expect(refused(["10.0.0.0/8", "fd00::/8", "192.0.2.7"])).toEqual([
      ...always,
      [own, "10.0.0.0/8"],
      [own, "192.0.2.7"],
    ]);
  });

  test("the text grows with the number of machines, not of pairs", () => {
    const port = (host: number): Port => ({
      tap: tapName(names, host),
      mac: macOf(String(host)),
      address: addressOf(subnet, host),
      group: "shop",
    });
    const length = (count: number) => rules(Array.from({ length: count }, (_, index) => port(index + 2))).length;
    expect(length(1000) - length(500)).toBeLessThan(1.1 * (length(500) - length(0)));
  });

  test("replace all rules of this platform, and touch no other table", () => {
    const text = rules([], [4280, 9090]);
    const tables = [...text.matchAll(/^(?:delete )?table (\w+) (\w+)/gm)].map(([line]) => line);
    for (const family of ["bridge", "inet"]) {
      const table = `table ${family} ${names.table}`;
      expect(tables.filter((line) => line.endsWith(table))).toEqual([table, `delete ${table}`, table]);
    }
    expect(tables).toHaveLength(6);
    expect(text).toContain('iifname "hib*" tcp dport { 4280, 9090 } reject with tcp reset');
    expect(rules([])).not.toContain("tcp dport {");
    expect(noRuleset(names)).toBe(
      [
        `bridge ${names.table}`,
        `inet ${names.table}`,
        `inet ${names.flowTable}`,
        `inet ${names.clientTable}`,
        `inet ${names.egressTable}`,
        `bridge ${names.egressTable}`,
      ]
        .map((table) => `table ${table}\ndelete table ${table}\n`)
        .join(""),
    );
  });
});

describe("names", () => {
  test("fit into the kernel's limit for every possible machine", () => {
    const longest = tapName(names, size(subnet) - 2);
    expect(longest.length).toBeLessThanOrEqual(15);
    expect(longest.startsWith(names.bridge)).toBe(true);
    expect(tapHost(names, longest)).toBe(1022);
  });

  test("of tables tell their data directory, as far as nft allows, which refuses longer comments with all rules", () => {
    expect(namesFor("/var/lib/hibernaut").owner).toBe("/var/lib/hibernaut");
    for (const folder of [`/srv/${"long/".repeat(60)}`, `/srv/${"ü".repeat(200)}`, `/s/${"🌙".repeat(100)}`]) {
      const { owner } = namesFor(folder);
      expect(Buffer.byteLength(owner)).toBeLessThanOrEqual(128);
      expect(owner.startsWith(folder.slice(0, 20))).toBe(true);
    }
    expect(namesFor('/srv/"a\\b\n').owner).toBe("/srv/?a?b?");
  });

  test("differ for another data directory", () => {
    expect(namesFor("/srv/hibernaut").bridge).not.toBe(names.bridge);
    expect(namesFor("/var/lib/hibernaut")).toEqual(names);
  });

  test("MAC addresses are local, unicast and never change", () => {
    expect(gatewayMac(subnet)).toBe("02:68:0a:d5:00:00");
    expect(macOf("1234567890abcd")).toMatch(/^02(:[0-9a-f]{2}){5}$/);
    expect(macOf("1234567890abcd")).toBe(macOf("1234567890abcd"));
  });

  test("a tap is bound to its machine's address and MAC", () => {
    const port = { tap: tapName(names, 5), mac: "02:00:00:00:00:05", address: "10.213.0.5", group: "shop" };
    expect(tapSettings(names, port).at(-1)).toBe(
      `neighbour replace 10.213.0.5 lladdr 02:00:00:00:00:05 dev ${names.bridge} nud permanent`,
    );
    expect(forwardingEntry(port)).toBe(`fdb replace 02:00:00:00:00:05 dev ${port.tap} master static`);
  });
});

describe("the subnet", () => {
  const subnets = fc
    .tuple(fc.integer({ min: 8, max: 32 }), fc.nat(0xffffffff))
    .map(([prefix, address]) => ({ base: address - (address % size({ prefix })), prefix }));

  test("is parsed and formatted as people write it", () => {
    fc.assert(
      fc.property(subnets, (one) => {
        expect(parseSubnet(formatSubnet(one))).toEqual(one);
      }),
    );
    for (const text of ["10.0.0.1/22", "10.0.0.0", "10.0.0.0/33", "10.0.0/22", "256.0.0.0/8", "::/0", ""])
      expect(parseSubnet(text), text).toBeUndefined();
  });

  test("that is chosen overlaps nothing that the host uses", () => {
    fc.assert(
      fc.property(fc.array(subnets, { maxLength: 20 }), fc.nat(0xffffff), (used, seed) => {
        const chosen = chooseSubnet(used, seed);
        if (chosen === undefined) return;
        expect(chosen.prefix).toBe(22);
        for (const other of used) expect(overlap(chosen, other)).toBe(false);
      }),
    );
  });

  test("is found in the next range when one is used up, and not at all when all are", () => {
    const all = ["10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16"].map(parse);
    expect(formatSubnet(chooseSubnet([], 0) ?? subnet)).toBe("10.213.0.0/22");
    expect(formatSubnet(chooseSubnet(all.slice(0, 1), 0) ?? subnet)).toBe("172.29.64.0/22");
    expect(formatSubnet(chooseSubnet(all.slice(0, 2), 0) ?? subnet)).toBe("192.168.224.0/22");
    expect(chooseSubnet(all, 0)).toBeUndefined();
  });

  test("of two platforms differs, even when they never run together", () => {
    expect(chooseSubnet([], 1)).not.toEqual(chooseSubnet([], 2));
  });

  test("is occupied by what has all or part of it, not by a wider route", () => {
    for (const other of ["10.213.0.0/22", "10.213.1.0/24", "10.213.3.7/32"])
      expect(occupant(subnet, [parse(other)]), other).toEqual(parse(other));
    for (const other of ["10.0.0.0/8", "10.213.4.0/22", "10.213.0.0/16"])
      expect(occupant(subnet, [parse(other)]), other).toBeUndefined();
  });

  test("has room for machines between gateway and broadcast", () => {
    expect(machineHost(subnet, "10.213.0.2")).toBe(2);
    expect(machineHost(subnet, "10.213.3.254")).toBe(1022);
    for (const address of ["10.213.0.0", "10.213.0.1", "10.213.3.255", "10.213.4.2", "127.20.3.4", "nonsense"])
      expect(machineHost(subnet, address), address).toBeUndefined();
  });
});
