import { beforeAll, expect, test } from "vitest";
import type { Stage } from "../behaviour.ts";

export function describeIntegrity({ api, world, variant }: Stage): void {
  let supplier = 0;
  let product = 0;
  let order = 0;
  beforeAll(async () => {
    const { call } = api();
    supplier = (await call("POST", "/suppliers", [{ companyName: "s", country: "c" }])).body[0].id;
    const row = { name: "p", supplierId: supplier, unitPrice: "3", unitsInStock: 1 };
    product = (await call("POST", "/products", [row])).body[0].id;
    order = await world().insertOrder({ lines: [{ productId: product, quantity: 2 }] });
  });

  test("a row that others refer to cannot be deleted", async () => {
    for (const statement of [
      `delete from suppliers where id = ${supplier}`,
      `delete from products where id = ${product}`,
      `delete from orders where id = ${order}`,
    ]) {
      await expect(world().execute(statement), statement).rejects.toThrow();
    }
    expect((await api().call("GET", `/products/${product}`)).body.supplier.id).toBe(supplier);
    expect((await api().call("GET", `/orders/${order}`)).body.totalProducts).toBe(1);
  });

  test("a product whose supplier is missing, as in a database that does not check, has null as its supplier", async () => {
    const row = { name: "orphan", supplierId: supplier, unitPrice: "1", unitsInStock: 2 };
    const { id } = (await api().call("POST", "/products", [row])).body[0];
    await world().executeUnchecked(`update products set "supplierId" = 999999 where id = ${id}`);
    expect(await api().call("GET", `/products/${id}`)).toMatchObject({
      status: 200,
      body: { product: { id, name: "orphan", supplierId: 999_999 }, supplier: null },
    });
  });

  test("references must exist, and a product is in an order only once", async () => {
    const line = (orderId: number, productId: number) =>
      `insert into order_details values (${orderId}, ${productId}, 1)`;
    for (const statement of [line(order, product), line(order, 999_999), line(999_999, product)]) {
      await expect(world().execute(statement), statement).rejects.toThrow();
    }
  });

  test(`a changed id is ${variant.cascadesUpdates ? "also changed in rows that refer to it" : "refused while rows refer to it"}`, async () => {
    const changes = [
      `update suppliers set id = 5000 where id = ${supplier}`,
      `update products set id = 6000 where id = ${product}`,
      `update orders set id = 7000 where id = ${order}`,
    ];
    for (const statement of changes) {
      if (variant.cascadesUpdates) await world().execute(statement);
      else await expect(world().execute(statement), statement).rejects.toThrow();
    }
    const [supplierId, productId, orderId] = variant.cascadesUpdates ? [5000, 6000, 7000] : [supplier, product, order];
    const { body } = await api().call("GET", `/products/${productId}`);
    expect(body).toMatchObject({ product: { id: productId, supplierId }, supplier: { id: supplierId } });
    const totals = (await api().call("GET", `/orders/${orderId}`)).body;
    expect(totals).toMatchObject({ totalPrice: 6, totalQuantity: 2, totalProducts: 1 });
  });
}
