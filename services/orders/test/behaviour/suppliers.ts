import { expect, test } from "vitest";
import type { Stage } from "../behaviour.ts";

export function describeSuppliers({ api }: Stage): void {
  test("are created in order, with or without a city", async () => {
    const { status, body } = await api().call("POST", "/suppliers", [
      { companyName: "Zaanse Molen", city: "Zaandam", country: "Netherlands" },
      { companyName: "Arvo", country: "Finland" },
      { companyName: "Mitte", city: null, country: "Germany" },
    ]);
    expect(status).toBe(201);
    expect(body.map(({ id: _, ...rest }: { id: number }) => rest)).toEqual([
      { companyName: "Zaanse Molen", city: "Zaandam", country: "Netherlands" },
      { companyName: "Arvo", city: null, country: "Finland" },
      { companyName: "Mitte", city: null, country: "Germany" },
    ]);
  });

  test.each([
    [{ city: "Lyon" }, { city: "Lyon", country: "Italy" }],
    [{ country: "France" }, { city: "Rome", country: "France" }],
    [{ city: null }, { city: null, country: "Italy" }],
    [
      { city: "Nice", country: "France" },
      { city: "Nice", country: "France" },
    ],
    [
      { city: null, country: "France" },
      { city: null, country: "France" },
    ],
  ])("PATCH %j changes the given fields and nothing else", async (changes, expected) => {
    const { call } = api();
    const created = await call("POST", "/suppliers", [
      { companyName: "Roma", city: "Rome", country: "Italy" },
      { companyName: "Other", city: "Oslo", country: "Norway" },
    ]);
    const [{ id }, other] = created.body;
    const changed = await call("PATCH", `/suppliers/${id}`, changes);
    expect(changed.status).toBe(200);
    expect(changed.body).toEqual({ id, companyName: "Roma", ...expected });
    const product = { name: "p", unitPrice: "1", unitsInStock: 0 };
    const { body } = await call("POST", "/products", [
      { ...product, supplierId: id },
      { ...product, supplierId: other.id },
    ]);
    expect((await call("GET", `/products/${body[0].id}`)).body.supplier).toEqual(changed.body);
    expect((await call("GET", `/products/${body[1].id}`)).body.supplier).toEqual(other);
  });

  test.each([{}, { city: "x", id: 3 }, { companyName: "x" }, { country: null }, { city: 1 }, [], null])(
    "PATCH %j is refused",
    async (changes) => {
      const { status, body } = await api().call("PATCH", "/suppliers/1", changes);
      expect({ status, code: body.code }).toEqual({ status: 400, code: "invalid_input" });
    },
  );

  test("PATCH of a supplier that does not exist is a 404", async () => {
    const { status, body } = await api().call("PATCH", "/suppliers/2147483647", { city: "x" });
    expect({ status, code: body.code }).toEqual({ status: 404, code: "not_found" });
  });
}
