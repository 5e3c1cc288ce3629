/** `fly machine clone` makes a volume for the new machine: as large, and with the same name, as it reads at the first one. */
import { expect, test } from "vitest";
import { startFly } from "./helpers.ts";

test("a machine tells the name and the size of its volume, and takes them back", async () => {
  const { call } = await startFly();
  await call("POST", "/v1/apps", { name: "shop" });
  const { body: volume } = await call<{ id: string }>("POST", "/v1/apps/shop/volumes", { name: "data", size_gb: 3 });
  const config = { image: "app:1", mounts: [{ volume: volume.id, path: "/data" }] };
  const { body: made } = await call<{ id: string }>("POST", "/v1/apps/shop/machines", { config });
  const at = `/v1/apps/shop/machines/${made.id}`;
  await call("GET", `${at}/wait?state=started`);
  const mounts = [{ volume: volume.id, name: "data", size_gb: 3, path: "/data" }];
  const { body: machine } = await call<{ config: object }>("GET", at);
  expect(machine).toMatchObject({ config: { mounts } });
  await call("PUT", `/v1/apps/shop/volumes/${volume.id}/extend`, { size_gb: 4 });
  const updated = await call("POST", at, { config: { ...machine.config, env: { A: "b" } } });
  expect(updated).toMatchObject({ status: 200, body: { config: { mounts: [{ ...mounts[0], size_gb: 4 }] } } });
});
