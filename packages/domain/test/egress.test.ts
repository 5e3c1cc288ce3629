/** Where machines may connect to, as their owners write it. */
import { formatAddress, overlap } from "@hibernaut/lib/ipv4";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { egressOf, egressRefusal, isNamed, mayReach } from "../src/egress.ts";

describe("rules are refused", () => {
  test.each([
    [{ allow: ["example.com"] }, "allow[0]", /Set `default` to deny/],
    [{ default: "deny" as const, allow: ["192.0.2.1", "192.0.2.1/24"] }, "allow[1]", /all bits after the prefix are 0/],
    [{ default: "deny" as const, allow: ["*.com"] }, "allow[0]", /not an address/],
    [{ default: "deny" as const, allow: ["*"] }, "allow[0]", /not an address/],
    [{ default: "deny" as const, allow: ["ex*mple.com"] }, "allow[0]", /not an address/],
    [{ default: "deny" as const, allow: ["1.2.3"] }, "allow[0]", /not an address/],
    [{ deny: ["example.com"] }, "deny[0]", /could reach what is behind it by its address/],
    [{ deny: ["2001:db8::/32"] }, "deny[0]", /no IPv6/],
  ])("%j", (config, field, message) => {
    expect(egressRefusal(config)).toEqual({ field, message: expect.stringMatching(message) });
  });

  test("and otherwise taken", () => {
    const config = { default: "deny" as const, allow: ["192.0.2.7", "10.0.0.0/8", "Example.com", "*.example.org"] };
    expect(egressRefusal(config)).toBeUndefined();
    expect(egressOf(config).names).toEqual(["example.com", "*.example.org"]);
  });
});

test("what is allowed comes before what is denied, and that before the default", () => {
  const rules = egressOf({ allow: ["10.1.0.0/16"], deny: ["10.0.0.0/8"] });
  expect(["10.1.2.3", "10.2.2.3", "192.0.2.1", "nonsense"].map((address) => mayReach(rules, address))).toEqual([
    ...[true, false, true, false],
  ]);
  // As clients write it who have no default.
  expect(mayReach(egressOf({ deny: ["0.0.0.0/0"], allow: ["192.0.2.1"] }), "192.0.2.2")).toBe(false);
  expect(mayReach(egressOf({ deny: ["0.0.0.0/0"], allow: ["192.0.2.1"] }), "192.0.2.1")).toBe(true);
});

test("a name stands for itself, and one with a star for all below it", () => {
  const rules = egressOf({ default: "deny", allow: ["example.com", "*.example.org"] });
  const asked = [
    "EXAMPLE.com.",
    "a.b.example.org",
    "example.org",
    "notexample.com",
    "evil-example.org",
    ".example.org",
  ];
  expect(asked.filter((name) => isNamed(rules, name))).toEqual(["EXAMPLE.com.", "a.b.example.org"]);
});

test("no two networks of a list overlap, and together they are what was listed", () => {
  const network = fc
    .record({ address: fc.nat(0xffffffff), prefix: fc.integer({ min: 1, max: 32 }) })
    .map(({ address, prefix }) => `${formatAddress(address - (address % 2 ** (32 - prefix)))}/${prefix}`);
  fc.assert(
    fc.property(fc.array(network, { maxLength: 30 }), fc.nat(0xffffffff), (deny, address) => {
      const { denied } = egressOf({ deny });
      for (const [index, one] of denied.entries())
        expect(denied.slice(index + 1).some((other) => overlap(one, other))).toBe(false);
      const isListed = deny.some((text) => {
        const [base = "", prefix = "32"] = text.split("/");
        const bits = 32 - Number(prefix);
        const start = base.split(".").reduce((sum, part) => sum * 256 + Number(part), 0);
        return address >= start && address < start + 2 ** bits;
      });
      expect(mayReach(egressOf({ deny }), formatAddress(address))).toBe(!isListed);
    }),
  );
});
