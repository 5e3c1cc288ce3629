import { beforeAll, expect, test } from "vitest";
import type { Stage } from "../behaviour.ts";

export function describeOrders({ api, world }: Stage): void {
  let products: number[] = [];
  beforeAll(async () => {
    const { call } = api();
    const supplierId = (await call("POST", "/suppliers", [{ companyName: "s", country: "c" }])).body[0].id;
    const rows = ["18.0000", "0.1000", "0.2000"].map((unitPrice) => ({
      name: "p",
      supplierId,
      unitPrice,
      unitsInStock: 1,
    }));
    products = (await call("POST", "/products", rows)).body.map(({ id }: { id: number }) => id);
  });
  const lines = (...quantities: number[]) =>
    quantities.map((quantity, index) => ({ productId: products[index] ?? 0, quantity }));

  test("have their totals", async () => {
    const id = await world().insertOrder({ orderDate: "1996-07-04", shipCountry: "Åland", lines: lines(2, 3, 4) });
    expect(await api().call("GET", `/orders/${id}`)).toMatchObject({
      status: 200,
      body: {
        id,
        shipCountry: "Åland",
        orderDate: "1996-07-04",
        totalPrice: 37.1,
        totalQuantity: 9,
        totalProducts: 3,
      },
    });
  });

  test("without lines have totals of 0, and are deleted like others", async () => {
    const id = await world().insertOrder({});
    const { body } = await api().call("GET", `/orders/${id}`);
    expect(body).toMatchObject({ id, totalPrice: 0, totalQuantity: 0, totalProducts: 0 });
    expect((await api().call("DELETE", `/orders/${id}`)).status).toBe(204);
    expect((await api().call("GET", `/orders/${id}`)).status).toBe(404);
  });

  test("count only their own lines", async () => {
    const [first, second] = [
      await world().insertOrder({ lines: lines(1) }),
      await world().insertOrder({ lines: lines(5, 5) }),
    ];
    expect((await api().call("GET", `/orders/${first}`)).body).toMatchObject({ totalQuantity: 1, totalProducts: 1 });
    expect((await api().call("GET", `/orders/${second}`)).body).toMatchObject({ totalQuantity: 10, totalProducts: 2 });
  });

  test("are deleted with their lines, once, and other orders stay", async () => {
    const { call } = api();
    const other = await world().insertOrder({ lines: lines(7, 7) });
    const id = await world().insertOrder({ lines: lines(1, 1, 1) });
    expect(await call("DELETE", `/orders/${id}`)).toMatchObject({ status: 204, body: undefined });
    expect(await call("GET", `/orders/${id}`)).toMatchObject({ status: 404, body: { code: "not_found" } });
    expect(await call("DELETE", `/orders/${id}`)).toMatchObject({ status: 404, body: { code: "not_found" } });
    expect((await call("GET", `/orders/${other}`)).body).toMatchObject({ totalQuantity: 14 });
    // The lines are gone too: an order under the same id starts without any.
    await world().execute(
      `insert into orders (id, "orderDate", "shipAddress", "shipCountry") values (${id}, '2020-01-01', 'a', 'b')`,
    );
    expect((await call("GET", `/orders/${id}`)).body).toMatchObject({ totalProducts: 0 });
  });

  test("are deleted once by concurrent requests", async () => {
    const id = await world().insertOrder({ lines: lines(1, 1, 1) });
    const replies = await Promise.all(Array.from({ length: 8 }, () => api().call("DELETE", `/orders/${id}`)));
    expect(replies.map(({ status }) => status).sort((a, b) => a - b)).toEqual([204, ...Array(7).fill(404)]);
  });

  test("that others refer to stay, with their lines, and the reply is 409", async () => {
    const id = await world().insertOrder({ lines: lines(1, 2) });
    await world().execute('create table invoices ("orderId" integer not null references orders (id))');
    try {
      await world().execute(`insert into invoices values (${id})`);
      const reply = await api().call("DELETE", `/orders/${id}`);
      expect(reply).toMatchObject({ status: 409, body: { code: "still_referenced" } });
      expect(api().logged.at(-1)).toMatchObject({
        level: 30,
        method: "DELETE",
        reason: expect.stringContaining("refer"),
      });
      expect((await api().call("GET", `/orders/${id}`)).body).toMatchObject({ totalQuantity: 3, totalProducts: 2 });
    } finally {
      await world().execute("drop table invoices");
    }
    expect((await api().call("DELETE", `/orders/${id}`)).status).toBe(204);
  });
}
