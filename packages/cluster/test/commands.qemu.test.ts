import { expect, it } from "vitest";
import { SMALL_APP } from "../../platform/test/helpers/small-app/image.ts";
import { startHosts, type TestHost } from "./hosts.ts";
import { failure, run } from "./run-command.ts";

it("an administrator makes a cluster, adds a host, sees it, and takes it out, with commands alone", async () => {
  await using hosts = await startHosts({ count: 2, images: false, alone: true });
  const [a, b] = hosts.all as [TestHost, TestHost];
  expect(await failure(run(a, "cluster", "init", "--name", "a"))).toContain("Name it with --etcd");
  const open = ["--name", "a", "--etcd", "http://192.0.2.1:2379"];
  expect(await failure(run(a, "cluster", "init", ...open))).toMatch(/is not encrypted.*allow it with --insecure-etcd/s);
  const made = await run(
    a,
    "cluster",
    "init",
    "--name",
    "a",
    "--etcd",
    hosts.etcd.endpoints.join(),
    "--peer",
    "127.0.0.1",
  );
  expect(made).toMatch(/^Made cluster [0-9a-f]{16}, with this host as a\. Start the platform now/);
  await a.served.start();
  const token = await run(a, "cluster", "token", "--expires", "10m");
  expect(token).toMatch(/^hibjoin_\S+$/);
  expect(await run(b, "cluster", "join", token, "--name", "b", "--peer", "127.0.0.1")).toMatch(
    /^This host is a member of cluster [0-9a-f]{16}, as b\./,
  );
  const etcd = hosts.etcd.endpoints.join();
  expect(await run(b, "cluster", "etcd", "--etcd", etcd)).toBe(`This host finds etcd at ${etcd}.`);
  expect(await run(b, "cluster", "sign", "--yes")).toBe("All records are signed.");
  await b.served.start();
  await hosts.settled("a", "b");
  const status = await run(a, "cluster", "status");
  expect(status).toMatch(/connected; lease live/);
  expect(status).toMatch(/^a \*\s+up\s+0\s/m);
  expect(status).toMatch(/^b\s+up\s+0\s/m);
  expect(await failure(run(a, "cluster", "remove", "b"))).toContain("Host b is up");
  expect(await failure(run(b, "cluster", "leave", "--yes"))).toContain("Another platform is using");
  await b.served.stop();
  expect(await run(b, "cluster", "leave", "--yes")).toMatch(/^Host b is no longer part of cluster/);
  expect(JSON.parse(await run(a, "cluster", "status", "--json"))).toMatchObject({
    hosts: [{ name: "a", state: "up" }],
  });
});

it("an operator empties a host, moves a machine, and gives up a lost host, with commands alone", {
  tags: "again",
}, async () => {
  await using hosts = await startHosts({ count: 2 });
  const [a, b] = hosts.all as [TestHost, TestHost];
  const app = ["--app", "shop"];
  await run(a, "apps", "create", "shop");
  await run(a, "machine", "run", SMALL_APP, ...app, "--name", "web", "--host", "b", "--port", "8080");
  expect(await run(a, "machine", "list", ...app)).toMatch(/ HOST .*\n.* web +running +b /);
  expect(await run(a, "hosts", "drain", "b")).toBe("1 machine moved off host b.");
  expect(await run(a, "machine", "list", ...app)).toMatch(/ web +(starting|running) +a /);
  expect(await run(a, "hosts", "undrain", "b")).toBe("Host b takes machines again.");
  await run(b, "machine", "move", "web", "--host", "b", ...app);
  await run(a, "machine", "start", "web", ...app); // it starts again by itself, and this waits for it
  expect(await run(a, "machine", "list", ...app)).toMatch(/ web +running +b /);
  expect(await failure(run(a, "hosts", "evacuate", "b", "--yes"))).toContain("Make sure that host b is off");
  expect(await failure(run(a, "hosts", "evacuate", "b", "--dead", "--yes"))).toContain("Host b is up");
  await b.lose();
  await hosts.settled("a");
  expect(await run(a, "hosts", "evacuate", "b", "--dead", "--yes")).toMatch(
    /^1 machine of host b got another host\.\n {2}shop\/web \([0-9a-f]{14}\) is on a$/,
  );
});
