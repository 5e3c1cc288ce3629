/**
 * The orders service in a machine: what people see first, and how an app lives with being suspended.
 *
 * @module-tag again
 */
import { expect, test } from "vitest";
import { PATIENT } from "../helpers/patient.ts";
import { ORDERS_IMAGE } from "../helpers/qemu-world.ts";
import { Place } from "../helpers/served.ts";

const MACHINE = { image: ORDERS_IMAGE, services: [{ internal_port: 3000 }] };

// Most other stories are told on a bridge, where there is root.
const place = Place.forTests({ ...PATIENT, HIBERNAUT_NETWORK: "user" });

interface Found {
  items: { id: number; name: string }[];
  total: number;
}

const get = async (address: string, path: string) => {
  const response = await fetch(`http://${address}:3000${path}`, { headers: { connection: "close" } });
  return { status: response.status, body: (await response.json()) as Found };
};
const post = (address: string, path: string, rows: unknown[]) =>
  fetch(`http://${address}:3000${path}`, {
    method: "POST",
    headers: { "content-type": "application/json", connection: "close" },
    body: JSON.stringify(rows),
  });

test("with its embedded database: the same search before and after a sleep, and nothing written is lost", async () => {
  const { machine_id: id, private_address: address } = await place.machine(MACHINE);
  const before = await get(address, "/products?name=a&limit=5");
  expect(before.status).toBe(200);
  expect(before.body.items).toHaveLength(5);
  expect((await post(address, "/suppliers", [{ companyName: "Night Shift", country: "Norway" }])).status).toBe(201);
  await place.suspend(id);
  await place.start(id);
  expect(await get(address, "/products?name=a&limit=5")).toEqual(before);
  const added = [{ name: "Zzz lamp", supplierId: 31, unitPrice: "1.5000", unitsInStock: 1 }];
  expect((await post(address, "/products", added)).status).toBe(201);
  expect((await get(address, "/products?name=ZZZ")).body.total).toBe(1);
});
