/** Which host gets what, as a rule over what hosts say of themselves. */
import { isHibernautError } from "@hibernaut/domain/errors";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { longOr } from "../../platform/test/helpers/long.ts";
import type { ClusterHost } from "../src/cluster.ts";
import type { HostRecord } from "../src/keys.ts";
import { byRoom, place, refusals } from "../src/place.ts";

const up = (name: string, more: Partial<HostRecord> & { free?: number } = {}): ClusterHost & { ofApp: number } => {
  const { free = 1000, ...rest } = more;
  const record = { name, region: "eu", draining: false, memoryMb: { total: 4000, free }, ...rest } as HostRecord;
  return { name, member: { fingerprint: "", joinedAt: "" }, up: record, ofApp: 0 };
};
const away = (name: string) => ({ ...up(name), up: undefined });
const WANTED = { app: "shop", name: "web", memoryMb: 500 };

describe("a new machine", () => {
  test("goes where there is room first, then where the app has fewer machines", () => {
    const hosts = [{ ...up("a"), ofApp: 2 }, up("b", { free: 100 }), { ...up("c"), ofApp: 1 }, away("d")];
    expect(place(hosts, WANTED)).toEqual(["c", "a", "b"]);
  });

  test.each([
    ["an unknown region", { region: "us" }, "invalid_argument", "There is no region us here; the only one is eu."],
    ["an unknown host", { host: "z" }, "not_found", "no host z"],
    ["a host that is away", { host: "d" }, "host_unreachable", "Host d is away"],
    ["a host that drains", { host: "e" }, "draining", "being drained"],
    ["another host than its volume's", { host: "a", volumeHost: "b" }, "invalid_argument", "volume is on host b"],
  ])("is refused for %s", (_what, more, code, message) => {
    const hosts = [up("a"), up("b"), away("d"), up("e", { draining: true })];
    expect(() => place(hosts, { ...WANTED, ...more })).toThrow(
      expect.objectContaining({ code, message: expect.stringContaining(message) }),
    );
  });

  test("is refused because no host is up, and not for its region, which nobody knows then", () => {
    expect(() => place([away("d")], { ...WANTED, region: "eu" })).toThrow(
      expect.objectContaining({ code: "draining", message: expect.stringContaining("all are away or being drained") }),
    );
  });

  test("goes to a host of its region", () => {
    expect(place([up("a", { region: "us" }), up("b")], { ...WANTED, region: "eu" })).toEqual(["b"]);
  });
});

describe("a new machine from a template", () => {
  const template = (hosts: string[], refuses: string[] = []) => ({
    ...{ id: "0123456789abcd", name: "ready", hosts },
    refusal: ({ name }: HostRecord) => (refuses.includes(name) ? "cpu_model_changed: it is older" : undefined),
  });

  test("goes to a host that has it and room, then to one that has room, and only then to a full one", () => {
    const hosts = [{ ...up("a"), ofApp: 9 }, up("b"), up("c", { free: 100 }), up("d", { free: 100 }), away("e")];
    expect(place(hosts, { ...WANTED, template: template(["a", "d", "e"]) })).toEqual(["a", "b", "d", "c"]);
  });

  test.each([
    [
      "all that have it are away",
      template(["e"]),
      {},
      "host_unreachable",
      "Template ready (0123456789abcd) is on e, which is away",
    ],
    [
      "the host that was named does not fit",
      template(["a"], ["b"]),
      { host: "b" },
      "failed_precondition",
      "b: cpu_model_changed: it is older. It is on a.",
    ],
    [
      "no host fits, and the one that has it takes no machines",
      template(["d"], ["a", "b"]),
      {},
      "failed_precondition",
      "a: cpu_model_changed: it is older; b: cpu",
    ],
  ])("is refused when %s", (_what, wanted, more, code, message) => {
    const hosts = [up("a"), up("b"), up("d", { draining: true }), away("e")];
    expect(() => place(hosts, { ...WANTED, ...more, template: wanted })).toThrow(
      expect.objectContaining({ code, message: expect.stringContaining(message) }),
    );
  });

  test("whatever the hosts are, never goes where it does not fit, nor past a host that has it and room", () => {
    const host = fc.record({
      free: fc.constantFrom(0, 499, 500, 4000),
      ofApp: fc.nat(5),
      ...{ isUp: fc.boolean(), draining: fc.boolean(), has: fc.boolean(), fits: fc.boolean() },
    });
    fc.assert(
      fc.property(fc.array(host, { maxLength: 6 }), fc.option(fc.nat(6), { nil: undefined }), (all, chosen) => {
        const named = all.map((each, index) => ({ ...each, name: `h${index}` }));
        const hosts = named.map(({ name, free, draining, ofApp, isUp }) => ({
          ...(isUp ? up(name, { free, draining }) : away(name)),
          ofApp,
        }));
        const holders = named.filter(({ has }) => has).map(({ name }) => name);
        const refuses = named.filter(({ fits }) => !fits).map(({ name }) => name);
        const wanted = {
          ...WANTED,
          template: template(holders, refuses),
          host: chosen === undefined ? undefined : `h${chosen}`,
        };
        const possible = named.filter(
          ({ name, isUp, draining, has, fits }) =>
            isUp && !draining && (has || fits) && (wanted.host === undefined || wanted.host === name),
        );
        const canBeHad = named.some(({ has, isUp }) => has && isUp);
        let order: string[];
        try {
          order = place(hosts, wanted);
        } catch (error) {
          // Only when there is no choice, and always with a reason.
          expect(isHibernautError(error)).toBe(true);
          expect(canBeHad ? possible : []).toEqual([]);
          return;
        }
        expect(order.toSorted()).toEqual(possible.map(({ name }) => name).toSorted());
        const best = possible.find(({ name }) => name === order[0]);
        const hasRoom = ({ free }: { free: number }) => free >= WANTED.memoryMb;
        if (possible.some((each) => each.has && hasRoom(each))) expect(best).toMatchObject({ has: true });
        if (possible.some(hasRoom)) expect(best && hasRoom(best)).toBe(true);
      }),
      { numRuns: longOr(20_000, 1000) },
    );
  });
});

describe("a machine that needs another host", () => {
  test("goes to the one with the most room, also if that is not enough", () => {
    const hosts = [up("a", { free: 600 }), up("b", { free: 900 }), up("c", { draining: true }), away("d")];
    expect(byRoom({ memoryMb: 500 }, hosts)).toEqual(["b", "a"]);
    expect(byRoom({ memoryMb: 500 }, hosts, new Map([["b", 500]]))).toEqual(["a", "b"]);
    expect(byRoom({ memoryMb: 5000 }, hosts)).toEqual(["b", "a"]);
  });

  test("does not go to a host that cannot resume it, however much room that has", () => {
    const hosts = [up("a"), up("b", { free: 4000, hypervisor: { cpu_model: "older" } }), away("c")];
    const refusal = ({ hypervisor }: HostRecord) => hypervisor?.cpu_model && "cpu_model_changed";
    expect(byRoom({ memoryMb: 500, refusal }, hosts)).toEqual(["a"]);
    expect([...refusals({ memoryMb: 500, refusal }, hosts)]).toEqual([["b", "cpu_model_changed"]]);
  });
});
