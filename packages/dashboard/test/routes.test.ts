/** Addresses of pages. */
import fc from "fast-check";
import { expect, test } from "vitest";
import { pathOf, type Route, routeOf } from "../src/routes.ts";

const name = fc.string({ minLength: 1, unit: "grapheme" });
const route: fc.Arbitrary<Route> = fc.oneof(
  fc.constantFrom<Route>(
    { page: "overview" },
    { page: "networks" },
    { page: "backups" },
    { page: "host" },
    { page: "tokens" },
    { page: "audit" },
    { page: "sign-in" },
  ),
  name.map((app): Route => ({ page: "app", app })),
  fc.tuple(name, name).map(([app, machine]): Route => ({ page: "machine", app, machine })),
);

test("every page is found again at its address, whatever apps and machines are called", () => {
  fc.assert(
    fc.property(route, (one) => {
      expect(routeOf(pathOf(one))).toEqual(one);
    }),
  );
});

test("an address leads into the dashboard only, never to another host", () => {
  fc.assert(
    fc.property(route, (one) => {
      expect(new URL(pathOf(one), "http://here.test").host).toBe("here.test");
    }),
  );
});

test.each(["/apps", "/apps/shop/machines", "/apps/shop/volumes/1", "/host/1", "/nothing", "/apps/a/machines/b/c"])(
  "%s is not a page",
  (path) => {
    expect(routeOf(path)).toEqual({ page: "missing" });
  },
);

test("an address that is not encoded correctly is shown as it is", () => {
  expect(routeOf("/apps/%zz")).toEqual({ page: "app", app: "%zz" });
});
