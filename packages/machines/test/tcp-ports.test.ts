/** A TCP port leads to one app. */
import { controlPorts, ownPorts, publicPorts } from "@hibernaut/domain/own-ports";
import type { TcpHandler } from "@hibernaut/domain/tcp-handlers";
import { beforeEach, expect, test } from "vitest";
import { SMALL } from "../../platform/test/helpers/fake-world.ts";
import { shopForEach } from "./shop.ts";

const shop = shopForEach({ wrap: (deps) => ({ ...deps, ownPorts: new Set([8080]) }) });
beforeEach(() => {
  for (const app of ["db", "mail"]) shop.platform.apps.create(app);
});

const at = (...ports: number[]) => ({
  ...SMALL,
  services: [{ internal_port: 5432, ports: ports.map((port) => ({ port })) }],
});
const create = (app: string, ...ports: number[]) =>
  shop.machines.create(app, { config: at(...ports), skipLaunch: true });

test("machines of one app share it; another app is refused, and told whose it is", async () => {
  await create("db", 5432);
  await create("db", 5432);
  await expect(create("mail", 25, 5432)).rejects.toMatchObject({
    code: "already_exists",
    message:
      "Port 5432 belongs to app db: a TCP port leads to one app, unless all its apps handle TLS there. Choose another port, or remove it there.",
  });
  await create("mail", 25);
});

test("an update is refused likewise, and a destroyed machine gives its port back", async () => {
  const { record } = await create("db", 5432);
  const other = (await create("mail", 25)).record;
  await expect(shop.machines.update("mail", other.id, at(5432))).rejects.toMatchObject({ code: "already_exists" });
  shop.machines.destroy("db", record.id);
  await shop.machines.wait("db", record.id, ["destroyed"], { timeoutMs: 5000 });
  await shop.machines.update("mail", other.id, at(5432));
});

test("apps that handle TLS share it, and nobody else", async () => {
  const handling = (...handlers: TcpHandler[]) => ({
    config: { ...SMALL, services: [{ internal_port: 5432, ports: [{ port: 5432, handlers }] }] },
    skipLaunch: true,
  });
  await shop.machines.create("db", handling("pg_tls"));
  await shop.machines.create("mail", handling("tls_passthrough", "proxy_proto"));
  shop.platform.apps.create("plain");
  for (const refused of [handling("proxy_proto"), handling()])
    await expect(shop.machines.create("plain", refused)).rejects.toMatchObject({
      code: "already_exists",
      message: expect.stringMatching(
        /^Port 5432 belongs to app (db|mail), which shares it only with apps that handle TLS/,
      ),
    });
  await expect(shop.machines.create("plain", handling("tls", "pg_tls"))).rejects.toMatchObject({
    code: "invalid_argument",
    message: "A port has one handler for TLS. Use one of: tls, pg_tls.",
  });
  await shop.machines.create("plain", handling("tls"));
});

test("the platform's own ports are refused", async () => {
  await expect(create("db", 8080)).rejects.toMatchObject({
    code: "invalid_argument",
    message: expect.stringMatching(/^Port 8080 is the platform's own/),
  });
});

test("the platform's own ports are all that it listens on, and etcd's", () => {
  const on = (port: number) => ({ port });
  const listens = { apiListen: on(4280), proxyListen: on(0), proxyTlsListen: on(443), peerListen: on(4290) };
  expect([...ownPorts({ ...listens, proxyMetricsListen: on(9100) })].toSorted((a, b) => a - b)).toEqual([
    53, 443, 2379, 2380, 4280, 4290, 9100,
  ]);
  // Those that clients reach. Another host of a cluster does not count as one.
  expect(publicPorts({ ...listens, proxyMetricsListen: on(9100) })).toEqual([443, 4280, 9100]);
  const chosen = { ...listens, apiListen: on(0), flyListen: on(0), sandboxListen: on(0) };
  expect(controlPorts(chosen, false)).toEqual([]);
  expect(controlPorts({ ...chosen, apiListen: on(1), sandboxListen: on(2), flyListen: on(3) }, true)).toEqual([
    1, 2, 3, 4290,
  ]);
});
