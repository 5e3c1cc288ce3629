import { expect, test } from "vitest";
import type { Stage } from "../behaviour.ts";

export function describeRefusals({ api, world }: Stage): void {
  test("GET /health answers while the database does", async () => {
    expect(await api().call("GET", "/health")).toMatchObject({ status: 200, body: { status: "ok" } });
  });

  test("GET /products/:id?wrap=array returns an array with one element", async () => {
    const { call } = api();
    const [supplier] = (await call("POST", "/suppliers", [{ companyName: "s", country: "c" }])).body;
    const row = { name: "p", supplierId: supplier.id, unitPrice: "1", unitsInStock: 2 };
    const [product] = (await call("POST", "/products", [row])).body;
    expect(product).toEqual({ ...row, id: product.id, unitPrice: "1.0000" });
    const plain = await call("GET", `/products/${product.id}`);
    expect(plain.body).toEqual({ product, supplier });
    expect((await call("GET", `/products/${product.id}?wrap=array`)).body).toEqual([plain.body]);
    expect((await call("GET", `/products/${product.id}?wrap=object`)).status).toBe(400);
  });

  test.each(["0", "-1", "01", "1.0", "1e2", "2147483648", "x", "%00", "%F0%9F%98%80", "null", "9".repeat(90)])(
    "the id %s is refused",
    async (id) => {
      for (const path of [`/products/${id}`, `/orders/${id}`]) {
        const { status, body } = await api().call("GET", path);
        expect({ status, errors: body.errors }).toMatchObject({
          status: 400,
          errors: [{ in: "path", pointer: "/id" }],
        });
      }
    },
  );

  test.each(["/products/2147483647", "/orders/2147483647"])("%s is a 404", async (path) => {
    expect(await api().call("GET", path)).toMatchObject({ status: 404, body: { code: "not_found" } });
  });

  test("unknown addresses, methods and keys are refused", async () => {
    const { call } = api();
    expect((await call("GET", "/nothing")).status).toBe(404);
    expect((await call("GET", "/products?nmae=x")).body.errors).toMatchObject([{ in: "query", pointer: "/nmae" }]);
    expect((await call("GET", "/orders/1?x=1")).status).toBe(400);
    const { body } = await call("POST", "/suppliers", [{ companyName: "s", country: "c", "a/b": 1, __proto: 2 }]);
    expect(body.errors.map(({ pointer }: { pointer: string }) => pointer)).toEqual(["/0/a~1b", "/0/__proto"]);
  });

  test("an address says which methods it has, and HEAD is GET without the body", async () => {
    const { app } = api();
    for (const [method, url, allow] of [
      ["PUT", "/products/1?x=1", "GET, HEAD"],
      ["PATCH", "/orders/7", "DELETE, GET, HEAD"],
      ["DELETE", "/products", "GET, HEAD, POST"],
    ] as const) {
      const refused = await app.inject({ method, url });
      expect({ status: refused.statusCode, allow: refused.headers["allow"], code: refused.json().code }).toEqual({
        status: 405,
        allow,
        code: "method_not_allowed",
      });
    }
    const [head, get] = [await app.inject({ method: "HEAD", url: "/health" }), await app.inject("/health")];
    expect([head.statusCode, head.body]).toEqual([200, ""]);
    expect(head.headers["content-length"]).toBe(get.headers["content-length"]);
    expect((await app.inject({ method: "HEAD", url: "/products/2147483647" })).statusCode).toBe(404);
  });

  test("values are not converted to the right type", async () => {
    const row = { name: 1, supplierId: "1", unitPrice: 1, unitsInStock: true };
    const { body } = await api().call("POST", "/products", [row, {}]);
    const pointers = body.errors.map(({ pointer }: { pointer: string }) => pointer);
    const fields = ["name", "supplierId", "unitPrice", "unitsInStock"];
    expect(pointers.sort()).toEqual(fields.flatMap((field) => [`/0/${field}`, `/1/${field}`]).sort());
    expect((await api().call("POST", "/suppliers", { companyName: "s", country: "c" })).status).toBe(400);
  });

  test.each(["a\0b", "\0", "", "x".repeat(201)])("the text %j is refused", async (text) => {
    const { body } = await api().call("POST", "/suppliers", [{ companyName: text, city: text, country: text }]);
    expect(body.errors).toHaveLength(3);
  });

  test("half a surrogate pair is refused, a whole one is a letter", async () => {
    const half = '[{"companyName":"\\ud83d","country":"c"}]';
    expect((await api().call("POST", "/suppliers", half)).body.errors).toMatchObject([{ pointer: "/0/companyName" }]);
    const whole = '[{"companyName":"\\ud83d\\ude00","country":"c"}]';
    expect((await api().call("POST", "/suppliers", whole)).body[0].companyName).toBe("😀");
  });

  test("text is returned exactly as it was sent", async () => {
    const odd = "e\u0301 É \u2028 '\"\\ ; -- \t\n𝄞 \u{10ffff}\u{7f}\u{1}";
    const { body } = await api().call("POST", "/suppliers", [{ companyName: odd, city: odd, country: odd }]);
    expect(body[0]).toMatchObject({ companyName: odd, city: odd, country: odd });
  });

  test.each([
    ["half an object", "{", "application/json", 400, "malformed_request"],
    ["a prototype", '[{"__proto__":1}]', "application/json", 400, "malformed_request"],
    ["nothing", "", "application/json", 400, "invalid_input"],
    ["an array", "[]", "text/plain", 415, "unsupported_media_type"],
    ["an array", "[]", "nonsense", 415, "unsupported_media_type"],
    ["5 MiB", `"${"x".repeat(5 * 1024 * 1024)}"`, "application/json", 413, "body_too_large"],
  ])("%s as a body", async (_what, body, type, status, code) => {
    const reply = await api().call("POST", "/suppliers", body, { "content-type": type });
    expect({ status: reply.status, code: reply.body.code }).toEqual({ status, code });
  });

  test("once the storage is closed, every request is a 503 that says when to try again", async () => {
    await world().storage.close();
    const { call, logged } = api();
    logged.length = 0;
    const replies = await Promise.all([
      call("GET", "/health"),
      call("GET", "/products?name=x"),
      call("GET", "/orders/1"),
      call("DELETE", "/orders/1"),
      call("PATCH", "/suppliers/1", { city: "x" }),
      call("POST", "/suppliers", [{ companyName: "s", country: "c" }]),
    ]);
    for (const { status, headers, body } of replies) {
      expect({ status, code: body.code }).toEqual({ status: 503, code: "database_unavailable" });
      expect(headers["retry-after"]).toBe("1");
    }
    expect(logged).toMatchObject(replies.map(() => ({ level: 40, msg: "the database is unavailable" })));
  });
}
