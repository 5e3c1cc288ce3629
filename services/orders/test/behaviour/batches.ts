import { expect, test } from "vitest";
import type { Stage } from "../behaviour.ts";

interface Row {
  id: number;
  name: string;
}

export function describeBatches({ api }: Stage): void {
  const supplier = async (): Promise<number> =>
    (await api().call("POST", "/suppliers", [{ companyName: "s", country: "c" }])).body[0].id;
  const product = (supplierId: number, name: string) => ({ name, supplierId, unitPrice: "2.5", unitsInStock: 7 });
  const total = async (): Promise<number> => (await api().call("GET", "/products")).body.total;

  test("a thousand rows are returned in the given order, with ascending ids", async () => {
    const supplierId = await supplier();
    const names = Array.from({ length: 1000 }, (_, index) => `batch ${(index * 7919) % 1000}`);
    const { status, body } = await api().call(
      "POST",
      "/products",
      names.map((name) => product(supplierId, name)),
    );
    expect(status).toBe(201);
    const rows = body as Row[];
    expect(rows.map(({ name }) => name)).toEqual(names);
    const ids = rows.map(({ id }) => id);
    expect(ids).toEqual([...new Set(ids)].sort((a, b) => a - b));
    expect(rows[3]).toEqual({ ...product(supplierId, names[3] ?? ""), id: ids[3], unitPrice: "2.5000" });
  });

  test("a thousand suppliers are returned in the given order", async () => {
    const rows = Array.from({ length: 1000 }, (_, index) => ({
      companyName: `s ${(index * 6577) % 1000}`,
      city: index % 2 === 0 ? null : "c",
      country: "x",
    }));
    const { body } = await api().call("POST", "/suppliers", rows);
    expect(body.map(({ id: _, ...row }: Row) => row)).toEqual(rows);
  });

  test("no row is created if one has an unknown supplier, and exactly those rows are listed", async () => {
    const supplierId = await supplier();
    const before = await total();
    const rows = [2_147_483_646, supplierId, 2_147_483_647, supplierId, 2_147_483_646];
    const { status, body } = await api().call(
      "POST",
      "/products",
      rows.map((id) => product(id, "u")),
    );
    expect({ status, code: body.code }).toEqual({ status: 422, code: "unknown_supplier" });
    expect(await total()).toBe(before);
    expect(body.errors).toEqual(
      [0, 2, 4].map((index) => ({
        in: "body",
        pointer: `/${index}/supplierId`,
        message: `names supplier ${rows[index]}, which does not exist`,
      })),
    );
  });

  test("no row is created if one is not valid", async () => {
    const supplierId = await supplier();
    const before = await total();
    const rows = [product(supplierId, "a"), { ...product(supplierId, "b"), unitPrice: "-1" }];
    const { status, body } = await api().call("POST", "/products", rows);
    expect(status).toBe(400);
    expect(body.errors).toEqual([
      { in: "body", pointer: "/1/unitPrice", message: expect.stringContaining("999999.9999") },
    ]);
    expect(await total()).toBe(before);
  });

  test("batches of none and of a thousand and one are refused", async () => {
    const row = { companyName: "s", country: "c" };
    for (const rows of [[], Array.from({ length: 1001 }, () => row)]) {
      const { status, body } = await api().call("POST", "/suppliers", rows);
      expect({ status, errors: body.errors.length, at: body.errors[0].pointer }).toEqual({
        status: 400,
        errors: 1,
        at: "",
      });
    }
  });

  test("all invalid fields of a batch are listed", async () => {
    const wrong = { name: 1, supplierId: "1", unitPrice: 1, unitsInStock: "1" };
    const { body } = await api().call(
      "POST",
      "/products",
      Array.from({ length: 1000 }, () => wrong),
    );
    expect(body.errors).toHaveLength(4000);
    expect(body.errors.at(-1)).toMatchObject({ in: "body", pointer: "/999/unitsInStock" });
  });

  test("concurrent batches do not mix their rows", async () => {
    const supplierId = await supplier();
    const batches = Array.from({ length: 20 }, (_, batch) =>
      Array.from({ length: 25 }, (__, row) => product(supplierId, `c ${batch} ${row}`)),
    );
    const replies = await Promise.all(batches.map((rows) => api().call("POST", "/products", rows)));
    for (const [index, { body }] of replies.entries()) {
      expect(body.map(({ name }: Row) => name)).toEqual(batches[index]?.map(({ name }) => name));
    }
    expect(new Set(replies.flatMap(({ body }) => body.map(({ id }: Row) => id))).size).toBe(500);
  });
}
