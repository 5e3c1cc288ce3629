import fc from "fast-check";
import { beforeAll, expect, test } from "vitest";
import type { Stage } from "../behaviour.ts";
import type { Method } from "./world.ts";

const scalar = fc.oneof(
  fc.constantFrom<unknown>(
    "",
    "a",
    "18.0000",
    "1e5",
    "\0",
    "\ud800",
    "%",
    null,
    true,
    0,
    1,
    -1,
    1.5,
    2 ** 31,
    2 ** 53,
    -0,
  ),
  fc.jsonValue({ maxDepth: 1 }),
);
const supplier = fc.record({ companyName: scalar, city: scalar, country: scalar }, { requiredKeys: [] });
const product = fc.record(
  { name: scalar, supplierId: scalar, unitPrice: scalar, unitsInStock: scalar },
  { requiredKeys: [] },
);
const good = fc.constantFrom(
  [{ companyName: "s", country: "c" }],
  [{ name: "p", supplierId: 1, unitPrice: "1", unitsInStock: 1 }],
  [{ name: "p", supplierId: 99999, unitPrice: "1", unitsInStock: 1 }],
  { city: "x" },
  { city: null, country: "y" },
);
const body = fc.oneof(
  fc.constant(undefined),
  fc.string({ unit: "binary", maxLength: 40 }),
  fc.json(),
  {
    weight: 3,
    arbitrary: fc.array(fc.oneof(supplier, product), { maxLength: 4 }).map((value) => JSON.stringify(value)),
  },
  { weight: 2, arbitrary: good.map((value) => JSON.stringify(value)) },
);
const id = fc.oneof(
  { weight: 3, arbitrary: fc.constant("1") },
  fc.integer().map(String),
  fc.constantFrom("%00", "%2e%2e", "NaN", "1;drop table orders", "%ff", "%"),
  fc.string({ unit: "binary", maxLength: 20 }).map((text) => encodeURIComponent(text.toWellFormed())),
);
const value = fc.oneof(
  fc.constantFrom("", "1", "20", "-1", "1e9", "array", "%25", "%00", "%F0%9F%98%80", "%ZZ", "a&limit=2"),
  fc.string({ unit: "binary", maxLength: 10 }).map((text) => encodeURIComponent(text.toWellFormed())),
);
const query = fc.oneof(
  { weight: 3, arbitrary: fc.constant("") },
  fc
    .array(fc.tuple(fc.constantFrom("name", "offset", "limit", "wrap", "x", "__proto__", "constructor"), value), {
      maxLength: 3,
    })
    .map((pairs) => `?${pairs.map(([key, text]) => `${key}=${text}`).join("&")}`),
);
const contentType = fc.oneof(
  { weight: 9, arbitrary: fc.constant("application/json") },
  { weight: 1, arbitrary: fc.constantFrom("text/plain", "a/b;c", "application/json; charset=utf-16") },
);

export function describeFuzz({ api, world }: Stage): void {
  beforeAll(async () => {
    const { call } = api();
    const [{ id: supplierId }] = (await call("POST", "/suppliers", [{ companyName: "s", country: "c" }])).body;
    await call("POST", "/products", [{ name: "p", supplierId, unitPrice: "1", unitsInStock: 1 }]);
  });

  test("the document is OpenAPI 3.1 with every route of the service", () => {
    const { openapi, paths } = api().document;
    expect(openapi).toBe("3.1.0");
    const routes = Object.entries(paths).flatMap(([path, item]) =>
      Object.keys(item).map((method) => `${method.toUpperCase()} ${path}`),
    );
    expect(routes.sort()).toEqual([
      "DELETE /orders/{id}",
      "GET /health",
      "GET /orders/{id}",
      "GET /products",
      "GET /products/{id}",
      "PATCH /suppliers/{id}",
      "POST /products",
      "POST /suppliers",
    ]);
  });

  test("every reference in the document can be resolved", () => {
    const { document } = api();
    const text = JSON.stringify(document);
    const names = new Set(Object.keys(document.components.schemas));
    for (const [, name] of text.matchAll(/"#\/components\/schemas\/(\w+)"/g)) expect(names).toContain(name);
    expect(text).not.toMatch(/"\$ref":"(?!#\/components\/schemas\/)/);
  });

  test("junk never causes a 5xx, and every reply matches the document", { timeout: 120_000 }, async () => {
    const { document, logged, call } = api();
    const templates = [...Object.keys(document.paths), "/no/such"];
    const methods: Method[] = ["GET", "POST", "POST", "PATCH", "DELETE", "PUT"];
    const seen = new Map<number, number>();
    const request = fc.record({
      template: fc.constantFrom(...templates),
      method: fc.constantFrom(...methods),
      id,
      body,
      query,
      contentType,
    });
    await fc.assert(
      fc.asyncProperty(request, async ({ template, method, ...given }) => {
        // An order can be deleted only once, so there must always be another.
        const isOrder = template === "/orders/{id}" && given.id === "1";
        const row = isOrder ? String(await world().insertOrder({})) : given.id || "1";
        const path = template.replace("{id}", row);
        const sent = method === "GET" ? undefined : given.body;
        const headers = sent === undefined ? {} : { "content-type": given.contentType };
        const { status } = await call(method, path + given.query, sent, headers);
        expect(status).toBeLessThan(500);
        seen.set(status, (seen.get(status) ?? 0) + 1);
      }),
      { numRuns: 2000 },
    );
    expect(logged).toEqual([]);
    // Junk that is always refused would prove nothing.
    for (const status of [200, 201, 204, 400, 404, 415]) expect(seen.get(status) ?? 0, `${status}s`).toBeGreaterThan(0);
  });
}
