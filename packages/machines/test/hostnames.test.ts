import { describe, expect, test } from "vitest";
import { appUnder, checkHostname, nameIn } from "../src/hostnames.ts";
import { reservedBySettings } from "../src/reserved-names.ts";

const RULES = {
  suffixes: ["localhost", "apps.example.com"],
  isReserved: (name: string) => name === "hibernaut.example.com",
};

describe("a hostname of an app", () => {
  test.each([
    ["www.example.com", "www.example.com"],
    ["WWW.Example.COM.", "www.example.com"],
    ["example.co.uk", "example.co.uk"],
    ["1.example.com", "1.example.com"],
    ["x.0xcafe.org", "x.0xcafe.org"],
  ])("%s is stored as %s", (given, stored) => {
    expect(checkHostname(given, RULES)).toBe(stored);
  });

  test.each([
    ["127.0.0.1", "an IP address"],
    ["127.1", "an IP address"],
    ["0x7f000001", "an IP address"],
    ["0x7f.1", "an IP address"],
    ["2130706433", "an IP address"],
    ["017700000001", "an IP address"],
    ["192.0.2.2.", "an IP address"],
    ["www.example.5", "an IP address"],
    ["::1", "an IP address"],
    ["[::1]", "not a valid hostname"],
    ["com", "not a valid hostname"],
    ["localhost", "not a valid hostname"],
    ["www..com", "not a valid hostname"],
    ["www.example.com:80", "not a valid hostname"],
    [`${"a.".repeat(127)}com`, "not a valid hostname"],
    ["shop.localhost", "under localhost"],
    ["apps.example.com", "under apps.example.com"],
    ["hibernaut.example.com", "is reserved"],
    ["HIBERNAUT.example.com.", "is reserved"],
  ])("%s is refused: %s", (given, why) => {
    expect(() => checkHostname(given, RULES)).toThrow(why);
  });
});

test.each([
  ["hibernaut.example.com:4280", "hibernaut.example.com"],
  ["HIBERNAUT.example.com.", "hibernaut.example.com"],
  ["desk:4280", "desk"],
  ["127.0.0.1:4280", undefined],
  ["[::1]:4280", undefined],
  ["a_b.example.com", undefined],
  ["user@evil.example.com/", "evil.example.com"],
  ["", undefined],
  [undefined, undefined],
])("the Host %s has the name %s", (host, name) => {
  expect(nameIn(host)).toBe(name);
});

test("a name under a suffix is of an app, or of a machine of one", () => {
  expect(
    ["shop.localhost", "v1.shop.localhost", "shop.example.com"].map((name) => appUnder(["localhost"], name)),
  ).toEqual(["shop", "shop", undefined]);
});

test("the host's own name is reserved where the API listens beyond this host", () => {
  const reserved = (host: string) =>
    reservedBySettings({ reservedHostnames: ["Desk.example.com"], apiListen: { host, port: 4280 } }, "Host1");
  expect(reserved("127.0.0.1")).toEqual(["localhost", "127.0.0.1", "desk.example.com"]);
  expect(reserved("0.0.0.0")).toEqual(["localhost", "0.0.0.0", "desk.example.com", "host1"]);
});
