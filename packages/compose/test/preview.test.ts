/** What becomes of a project as a preview of itself. */
import { expect, test } from "vitest";
import { asPreview, Findings } from "../src/index.ts";
import { planOf, serviceIn, troubles } from "./disk.ts";

const PROJECT = `
services:
  web: {image: "app:1", ports: ["8080:8080"], depends_on: [db], x-hibernaut: {autostop: "off"}}
  db: {image: "postgres:16", ports: ["5432:5432"], container_name: store, volumes: ["rows:/rows"]}
  work: {image: "app:1", command: work, x-hibernaut: {worker: true}, links: ["db:database"]}
volumes: {rows: }
`;

function preview(name = "pr-12") {
  const { plan: own } = planOf(PROJECT);
  if (own === undefined) throw new Error("the project has no plan");
  const findings = new Findings();
  const plan = asPreview(own, name, findings);
  const found = { plan, findings: findings.list };
  return { plan, service: (service: string) => serviceIn(found, service), told: troubles(found) };
}

test("its apps are previews of those of the project, in a network of their own, and wake each other alone", () => {
  const { plan, service } = preview();
  expect(plan).toMatchObject({ name: "pr-12--shop", preview: { name: "pr-12", of: "shop" } });
  expect(plan.apps.map(({ app, previewOf }) => [app, previewOf])).toEqual([
    ["pr-12--shop-db", "shop-db"],
    ["pr-12--shop-web", "shop-web"],
    ["pr-12--shop-work", "shop-work"],
  ]);
  expect(service("web").wakes).toEqual(["pr-12--shop-db"]);
  // By the name of the project's app, too: otherwise what knows it by that would find nobody.
  expect(service("db").aliases).toEqual(["db", "store", "database", "shop-db"]);
});

test("it sleeps, takes no port of the host, and has volumes of the same names", () => {
  const { service, told } = preview();
  expect(service("web").config.services).toMatchObject([{ protocol: "http", autostop: "suspend" }]);
  expect(service("db").config.services).toEqual([
    { protocol: "tcp", internal_port: 5432, autostop: "suspend", idle: "quiet", idle_timeout: 300 },
  ]);
  expect(service("db").config.mounts).toEqual([{ volume: "rows", path: "/rows" }]);
  expect(service("work").config.services).toBeUndefined();
  expect(told).toContainEqual(
    "warning: services.db.ports: TCP port 5432 belongs to shop-db. In the preview, only its own services reach the port.",
  );
});

test.each(["a--b", "xn", "PR", "x".repeat(60)])("there is no preview %s", (name) => {
  expect(preview(name).told.at(-1)).toMatch(/^error: : `.*` is not a valid name for a preview/);
});
