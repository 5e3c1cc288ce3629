import fc from "fast-check";
import { beforeAll, expect, test } from "vitest";
import { sumOfLines } from "../../src/decimal.ts";
import type { Stage } from "../behaviour.ts";

/** A price as clients may write it, and its canonical form, computed on the text. */
const price = fc
  .tuple(fc.integer({ min: 0, max: 999_999 }), fc.integer({ min: 0, max: 9999 }), fc.integer({ min: 0, max: 4 }))
  .map(([whole, fraction, decimals]) => {
    const digits = String(fraction).padStart(4, "0");
    const cut = digits.slice(0, decimals);
    return { written: decimals === 0 ? `${whole}` : `${whole}.${cut}`, canonical: `${whole}.${cut.padEnd(4, "0")}` };
  });

export function describePrices({ api, world }: Stage): void {
  let supplierId = 0;
  beforeAll(async () => {
    supplierId = (await api().call("POST", "/suppliers", [{ companyName: "s", country: "c" }])).body[0].id;
  });
  const create = async (prices: string[]): Promise<{ id: number; unitPrice: string }[]> => {
    const rows = prices.map((unitPrice) => ({ name: "p", supplierId, unitPrice, unitsInStock: 1 }));
    const { status, body } = await api().call("POST", "/products", rows);
    expect(status).toBe(201);
    return body;
  };

  test("any price is returned in canonical form, also when it is read again", { timeout: 60_000 }, async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(price, { minLength: 1, maxLength: 50 }), async (prices) => {
        const rows = await create(prices.map(({ written }) => written));
        expect(rows.map(({ unitPrice }) => unitPrice)).toEqual(prices.map(({ canonical }) => canonical));
        const { body } = await api().call("GET", `/products/${rows[0]?.id}`);
        expect(body.product.unitPrice).toBe(prices[0]?.canonical);
      }),
      { numRuns: 40 },
    );
  });

  test("the sum of any order is exact", { timeout: 60_000 }, async () => {
    const quantity = fc.oneof(fc.integer({ min: 0, max: 1000 }), fc.integer({ min: 0, max: 2_147_483_647 }));
    const line = fc.record({ price, quantity });
    await fc.assert(
      fc.asyncProperty(fc.array(line, { minLength: 1, maxLength: 12 }), async (lines) => {
        const rows = await create(lines.map((each) => each.price.written));
        const id = await world().insertOrder({
          lines: rows.map((row, index) => ({ productId: row.id, quantity: lines[index]?.quantity ?? 0 })),
        });
        const exact = sumOfLines(lines.map((each) => ({ unitPrice: each.price.canonical, quantity: each.quantity })));
        expect((await world().storage.getOrder(id))?.totalPrice).toBe(exact);
        const { body } = await api().call("GET", `/orders/${id}`);
        expect(body.totalPrice).toBe(Number(exact));
        expect(body.totalQuantity).toBe(lines.reduce((sum, each) => sum + each.quantity, 0));
      }),
      { numRuns: 60 },
    );
  });

  test("a sum beyond 64 bits of ten-thousandths is still exact", async () => {
    const rows = await create(["999999.9999", "999999.9999", "0.0001"]);
    const id = await world().insertOrder({
      lines: rows.map((row) => ({ productId: row.id, quantity: 2_147_483_647 })),
    });
    // 2 * 999999.9999 * 2147483647 + 0.0001 * 2147483647, by BigInt and by hand.
    expect((await world().storage.getOrder(id))?.totalPrice).toBe("4294967293785251.6353");
  });
}
