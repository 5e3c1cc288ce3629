/** Leases of machines, and their metadata. */
import { Type } from "typebox";
import { path } from "../ask.ts";
import { Refusal } from "../failure.ts";
import { leaseView } from "../view/others.ts";
import type { PlatformLease } from "../view/platform.ts";
import { machineAt as at, type Call, MACHINE, type Routes } from "./table.ts";

const LeaseBody = Type.Object({
  ttl: Type.Optional(Type.Integer()),
  description: Type.Optional(Type.String()),
});
const ValueBody = Type.Object({ value: Type.String() });
const Values = Type.Record(Type.String(), Type.String());
/** Null deletes. */
const ChangesBody = Type.Record(Type.String(), Type.Union([Type.String(), Type.Null()]));
const MetadataBody = Type.Object({ metadata: Type.Optional(Values), machine_version: Type.Optional(Type.String()) });

export function leaseRoutes(route: Routes): void {
  route("GET", `${MACHINE}/lease`, {}, async (call) =>
    leaseView((await call.ask("GET", `${at(call)}/lease`)) as PlatformLease),
  );

  // fly-go says in the query for how long, others in the body.
  route("POST", `${MACHINE}/lease`, { body: LeaseBody }, async (call) => {
    const ttl = call.body.ttl ?? (call.query["ttl"] === undefined ? 0 : Number(call.query["ttl"]));
    if (!Number.isInteger(ttl) || ttl < 0)
      throw new Refusal(400, "invalid_argument: ttl must be a whole number of seconds.");
    const { description } = call.body;
    const wanted = { ...(ttl > 0 && { ttl }), ...(description !== undefined && { description }) };
    return leaseView((await call.ask("POST", `${at(call)}/lease`, wanted)) as PlatformLease);
  });

  route("DELETE", `${MACHINE}/lease`, {}, async (call) => call.ask("DELETE", `${at(call)}/lease`));
}

export function metadataRoutes(route: Routes): void {
  const all = async (call: Call) => (await call.ask("GET", `${at(call)}/metadata`)) as Record<string, string>;

  route("GET", `${MACHINE}/metadata`, {}, all);

  route("GET", `${MACHINE}/metadata/:key`, {}, async (call) => {
    const values = await all(call);
    const key = call.of("key");
    if (!Object.hasOwn(values, key)) throw new Refusal(404, `metadata key not found: ${key.slice(0, 100)}`);
    return { value: values[key] };
  });

  route("POST", `${MACHINE}/metadata/:key`, { body: ValueBody, status: 204 }, async (call) => {
    await call.ask("POST", `${at(call)}${path`/metadata/${call.of("key")}`}`, { value: call.body.value });
  });

  // One that is not there may be deleted, too.
  route("DELETE", `${MACHINE}/metadata/:key`, { status: 204 }, async (call) => {
    await call.ask("DELETE", `${at(call)}${path`/metadata/${call.of("key")}`}`);
  });

  route("PATCH", `${MACHINE}/metadata`, { body: ChangesBody, status: 204, keepsNulls: true }, async (call) => {
    await call.ask("PATCH", `${at(call)}/metadata`, call.body);
  });

  // All of it: what is not among the new ones goes.
  route("PUT", `${MACHINE}/metadata`, { body: MetadataBody, status: 204 }, async (call) => {
    const { metadata = {} } = call.body;
    const gone = Object.keys(await all(call)).filter((key) => !Object.hasOwn(metadata, key));
    const changes = { ...Object.fromEntries(gone.map((key) => [key, null])), ...metadata };
    await call.ask("PATCH", `${at(call)}/metadata`, changes);
  });
}
