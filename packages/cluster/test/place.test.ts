/** Which host gets what, as a rule over what hosts say of themselves. */
import { describe, expect, test } from "vitest";
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
