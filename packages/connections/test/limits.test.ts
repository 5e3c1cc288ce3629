/** Which connection gets a place, whose it takes, and what counts as one client. Pure. */
import { describe, expect, test } from "vitest";
import { clientKey, connectionLimits, placeFor } from "../src/limits.ts";
import { Shares } from "../src/shares.ts";

const LIMITS = { clients: 100, machines: 100, perAddress: 0, requests: 100 };
const of = (open: number, idle = 0) => ({ open, idle });

describe("a client's next connection", () => {
  test.each([
    ["has room", of(10), of(5), "free"],
    ["takes the place of an idle one of its own", of(100, 60), of(5, 2), "own"],
    ["takes the place of an idle one of others, when it has none", of(100, 60), of(5), "any"],
    ["is refused when all are in use", of(100), of(5), "full"],
    ["gives up an idle one of its own beyond half of all", of(50, 50), of(50, 50), "own"],
    ["is refused beyond as many as are left to others", of(50), of(50), "address"],
    ["does not count what waits for others", of(95, 90), of(5), "free"],
    ["that would be beyond its part takes nothing from others", of(100, 20), of(60), "full"],
  ])("%s", (_what, all, own, place) => {
    expect(placeFor(all, own, LIMITS)).toBe(place);
  });

  test("may be one of as many as a setting says", () => {
    const limits = { ...LIMITS, perAddress: 8 };
    expect([placeFor(of(20), of(7), limits), placeFor(of(20), of(8), limits)]).toEqual(["free", "address"]);
    expect(placeFor(of(20, 3), of(8, 3), limits)).toBe("own");
  });

  test("has only the limit of all if it stands for many clients", () => {
    const limits = { ...LIMITS, perAddress: 8 };
    expect([99, 100].map((open) => placeFor(of(open), of(open), limits, true))).toEqual(["free", "full"]);
  });

  test("has room however many hostile addresses there are, as long as each has only what it may", () => {
    const all = of(0);
    const taken: number[] = [];
    for (let address = 0; address < 5; address += 1) {
      const own = of(0);
      while (placeFor(all, own, LIMITS) === "free") {
        own.open += 1;
        all.open += 1;
      }
      taken.push(own.open);
    }
    expect(taken).toEqual([50, 25, 13, 6, 3]);
    expect(placeFor(all, of(0), LIMITS)).toBe("free");
  });
});

test("a process keeps a quarter of its descriptors, and half of the others are for machines", () => {
  expect(connectionLimits(1000)).toMatchObject({ clients: 375, machines: 375, perAddress: 0 });
  expect(connectionLimits(undefined, 7)).toMatchObject({ clients: 384, machines: 384, perAddress: 7 });
});

test("one client has one address of IPv4, or all of a network of IPv6", () => {
  expect(["192.0.2.7", "::ffff:192.0.2.7"].map(clientKey)).toEqual(["192.0.2.7", "192.0.2.7"]);
  const one = ["2001:db8:1:2::3", "2001:db8:1:2:3:4:5:6", "2001:db8:1:2::"].map(clientKey);
  expect(new Set(one)).toEqual(new Set(["2001:db8:1:2"]));
  expect(["2001:db8:1:3::3", "2001:db8::2:0:0:0:3", "::1", "fe80::1%eth0"].map(clientKey)).toEqual([
    "2001:db8:1:3",
    "2001:db8:0:2",
    "0:0:0:0",
    "fe80:0:0:0",
  ]);
});

test("apps share the connections to machines: one gets half, and there is always one more for another", () => {
  const shares = new Shares(8);
  const fill = (app: string) => {
    let count = 0;
    while (shares.take(app)) count += 1;
    return count;
  };
  expect(["one", "two", "three"].map(fill)).toEqual([4, 2, 1]);
  expect([shares.taken, shares.ample]).toEqual([7, false]);
  for (let count = 0; count < 4; count += 1) shares.give("one");
  expect([shares.ample, fill("four")]).toEqual([true, 3]);
});
