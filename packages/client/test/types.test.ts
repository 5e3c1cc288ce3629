import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, expectTypeOf, test } from "vitest";
import { generateClientTypes } from "../../../scripts/lib/client-types.mjs";
import type { MachineWire } from "../../api/src/routes/machines.schemas.ts";
import type { CreateMachineRequest, HibernautClient, Machine } from "../src/index.ts";

test("the generated types are those of the platform's OpenAPI document", { timeout: 60_000 }, async () => {
  const committed = readFileSync(join(import.meta.dirname, "../src/openapi.d.ts"), "utf8");
  expect(await generateClientTypes(), "run `npm run client-types`").toBe(committed);
});

test("replies have the types that the platform gives them", () => {
  expectTypeOf<Machine>().toEqualTypeOf<MachineWire>();
  expectTypeOf<HibernautClient["getMachine"]>().returns.resolves.toEqualTypeOf<Machine>();
});

test("a field with a default may be left out of a request", () => {
  expectTypeOf<{ config: { image: string; guest: { cpus: number } } }>().toExtend<CreateMachineRequest>();
  expectTypeOf<{ config: object }>().not.toExtend<CreateMachineRequest>();
});
