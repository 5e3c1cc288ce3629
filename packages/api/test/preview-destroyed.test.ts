/** A preview that is destroyed while it is being deployed: it goes, and what comes meanwhile is told so. */
import { setTimeout as delay } from "node:timers/promises";
import { VolumeFiles } from "@hibernaut/volumes/files";
import { beforeEach, expect, test, vi } from "vitest";
import { testApi } from "./helpers.ts";

const PR_12 = "/v1/apps/shop/previews/pr-12";
const PREVIEW = "/v1/apps/pr-12--shop";
const MACHINE = { config: { image: "x", mounts: [{ volume: "data", path: "/data" }] } };

let api: Awaited<ReturnType<typeof testApi>>;
beforeEach(async () => {
  api = await testApi({}, { apps: ["shop"] });
  await api.call("PUT", PR_12);
  const { body: machine } = await api.call("POST", `${PREVIEW}/machines`, MACHINE);
  await api.server.platform.machines.wait("pr-12--shop", machine.id, ["running"], { timeoutMs: 5000 });
});

/** Begins to destroy the preview, and holds that when all that it has is gone. Returns how to let it continue. */
async function destroying() {
  const { volumes } = api.server.platform;
  const { destroyAll } = volumes;
  const [begun, go] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  volumes.destroyAll = async (app) => {
    await destroyAll.call(volumes, app);
    begun.resolve();
    await go.promise;
  };
  const destroyed = api.call("DELETE", PR_12);
  await begun.promise;
  return () => {
    go.resolve();
    return destroyed;
  };
}

const everything = () => ({
  apps: api.server.platform.apps.list().map(({ name }) => name),
  machines: api.server.world.store.machines.list().filter(({ state }) => state !== "destroyed"),
  volumes: api.server.world.store.volumes.list("pr-12--shop"),
  templates: api.server.world.store.templates.list("pr-12--shop"),
});
const NOTHING = { apps: ["shop"], machines: [], volumes: [], templates: [] };

test.each([
  ["a renewal", "PUT", PR_12, undefined],
  ["a new machine", "POST", `${PREVIEW}/machines`, MACHINE],
])("%s is refused while it goes, and then there is nothing", async (_what, method, path, body) => {
  const letGo = await destroying();
  expect(await api.call(method, path, body)).toMatchObject({
    status: 409,
    body: { error: "aborted", message: expect.stringMatching(/^App pr-12--shop is being (deleted|destroyed)/) },
  });
  expect(await letGo()).toMatchObject({ status: 200 });
  expect(everything()).toEqual(NOTHING);
  expect(await api.call("PUT", PR_12)).toMatchObject({ status: 200 });
});

test("a volume that came meanwhile goes with it", async () => {
  const letGo = await destroying();
  await api.call("POST", `${PREVIEW}/volumes`, { name: "late" });
  expect(await letGo()).toMatchObject({ status: 200 });
  expect(everything()).toEqual(NOTHING);
});

test("a volume that takes longer than everything else goes with it", async () => {
  const [begun, go] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  vi.spyOn(VolumeFiles.prototype, "make").mockImplementationOnce(async () => {
    begun.resolve();
    await go.promise;
  });
  const late = api.call("POST", `${PREVIEW}/volumes`, { name: "late" });
  await begun.promise;
  const destroyed = api.call("DELETE", PR_12);
  await Promise.race([destroyed, delay(500)]);
  go.resolve();
  expect(await destroyed).toMatchObject({ status: 200 });
  await late;
  expect(everything()).toEqual(NOTHING);
});

test("a machine whose image was on its way is not made, and one that boots goes", async () => {
  const release = api.server.world.holdBoots();
  const { body: booting } = await api.call("POST", `${PREVIEW}/machines`, { config: { image: "x" } });
  const image = Promise.withResolvers<void>();
  const { images } = api.server.world;
  const { hold } = images;
  images.hold = async (...args) => {
    await image.promise;
    return hold.apply(images, args);
  };
  const late = api.call("POST", `${PREVIEW}/machines`, MACHINE);
  const held = destroying();
  release();
  const letGo = await held;
  image.resolve();
  expect(await late).toMatchObject({ status: 409, body: { error: "aborted" } });
  images.hold = hold;
  expect(await letGo()).toMatchObject({ status: 200 });
  expect(everything()).toEqual(NOTHING);
  expect(api.server.world.store.machines.get(booting.id)?.state ?? "destroyed").toBe("destroyed");
});

test("two who destroy it at once both find it gone", async () => {
  const letGo = await destroying();
  const second = api.call("DELETE", PR_12);
  expect(await letGo()).toMatchObject({ status: 200 });
  expect((await second).status).toBeOneOf([200, 404, 409]);
  expect(everything()).toEqual(NOTHING);
});

test("one that cannot be destroyed takes deploys again", async () => {
  const { volumes } = api.server.platform;
  const { destroyAll } = volumes;
  volumes.destroyAll = () => Promise.reject(new Error("the disk is broken"));
  expect((await api.call("DELETE", PR_12)).status).toBe(500);
  volumes.destroyAll = destroyAll;
  expect(await api.call("POST", `${PREVIEW}/machines`, MACHINE)).toMatchObject({ status: 201 });
});
