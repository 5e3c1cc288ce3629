import { expectTypeOf, test } from "vitest";
import type { MachineWire } from "../../api/src/routes/machines.schemas.ts";
import type { CreateMachineRequest, HibernautClient, Machine } from "../src/index.ts";

test("replies have the types that the platform gives them", () => {
  expectTypeOf<Machine>().toEqualTypeOf<MachineWire>();
  expectTypeOf<HibernautClient["getMachine"]>().returns.resolves.toEqualTypeOf<Machine>();
});

test("a field with a default may be left out of a request", () => {
  expectTypeOf<{ config: { image: string; guest: { cpus: number } } }>().toExtend<CreateMachineRequest>();
  expectTypeOf<{ config: object }>().not.toExtend<CreateMachineRequest>();
});
