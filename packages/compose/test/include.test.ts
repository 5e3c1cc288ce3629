/** Projects that include others: what becomes of their services, paths and variables, and what is refused. */
import { expect, test } from "vitest";
import { planOf, serviceIn, troubles } from "./disk.ts";

const WEB = "services: {web: {image: 'web:1', depends_on: [db]}}";

test("what a file includes is part of the project, and its paths begin where it is", () => {
  const found = planOf(`include: [../base/db.yaml]\n${WEB}`, {
    "/srv/base/db.yaml": `
services:
  db: {build: ./db, env_file: db.env, volumes: ["rows:/data", "./db.conf:/etc/db.conf"], secrets: [password], configs: [site]}
volumes: {rows: {x-hibernaut: {size: 2gb}}}
secrets: {password: {file: ./password.txt}}
configs: {site: {file: site.conf}}
`,
    "/srv/base/db/Dockerfile": "FROM debian\n",
    "/srv/base/db.env": "MODE=small\n",
    "/srv/base/db.conf": "a = 1",
    "/srv/base/password.txt": "hunter2",
    "/srv/base/site.conf": "port 80",
  });
  expect(troubles(found)).toEqual([]);
  expect(found.plan?.name).toBe("shop");
  const { build, config } = serviceIn(found, "db");
  expect(build).toMatchObject({ directory: "/srv/base/db" });
  expect(config).toMatchObject({ env: { MODE: "small" }, mounts: [{ volume: "rows", path: "/data", size_gb: 2 }] });
  expect(config.files?.map(({ guest_path: path }) => path)).toEqual(["/etc/db.conf", "/run/secrets/password", "/site"]);
});

test("the long form lays files over each other, and says where their paths begin and their variables are", () => {
  const compose = `
include:
  - path: [db/compose.yaml, db.local.yaml]
    project_directory: data
    env_file: [db/one.env, db/two.env]
${WEB}
`;
  const found = planOf(
    compose,
    {
      "/srv/shop/db/compose.yaml":
        "services: {db: {image: 'postgres:$TAG', build: !reset x, environment: [ZONE, HOME_OF]}}",
      "/srv/shop/db.local.yaml": "services: {db: {env_file: here.env, mem_limit: 1g}}",
      "/srv/shop/data/here.env": "A=1\n",
      "/srv/shop/db/one.env": "TAG=15\nZONE=eu\nHOME_OF=file\n",
      "/srv/shop/db/two.env": "TAG=16\n",
    },
    { environment: { HOME_OF: "shell" } },
  );
  expect(troubles(found)).toEqual([]);
  expect(serviceIn(found, "db")).toMatchObject({
    image: "postgres:16",
    config: { guest: { memory_mb: 1024 }, env: { A: "1", ZONE: "eu", HOME_OF: "shell" } },
  });
});

test("an included file has the .env next to it, which the project's own comes before", () => {
  const files = {
    "/srv/shop/.env": "TAG=1\n",
    "/srv/base/.env": "TAG=2\nNAME=base\n",
    "/srv/base/compose.yaml":
      "services: {db: {image: '$NAME:$TAG', secrets: [token]}}\nsecrets: {token: {environment: NAME}}",
  };
  const found = planOf(`include: [{path: ../base/compose.yaml}]\n${WEB}`, files);
  expect(troubles(found)).toEqual([]);
  expect(serviceIn(found, "db")).toMatchObject({
    image: "base:1",
    secrets: [{ name: "FILE_TOKEN", value: Buffer.from("base").toString("base64") }],
  });
});

test("an override next to the file changes what is included, and included files include others", () => {
  const found = planOf(`include: [a/compose.yaml]\nservices: {web: {image: w}}`, {
    "/srv/shop/a/compose.yaml":
      "include: [../b/compose.yaml]\nservices: {mail: {extends: {file: base.yaml, service: mail}}}",
    "/srv/shop/a/base.yaml": "services: {mail: {build: ./mail}}",
    "/srv/shop/b/compose.yaml": "services: {db: {image: postgres}}",
    "/srv/shop/compose.override.yaml": "services: {db: {mem_limit: 1g}}",
  });
  expect(troubles(found)).toEqual([]);
  expect(serviceIn(found, "mail").build).toMatchObject({ directory: "/srv/shop/a/mail" });
  expect(serviceIn(found, "db").config.guest).toEqual({ memory_mb: 1024 });
});

test("what comes twice in the same way counts once, and in another way is refused with the remedy", () => {
  const files = {
    "/srv/shop/a.yaml": "include: [db.yaml]\nservices: {a: {image: a}}",
    "/srv/shop/b.yaml": "include: [db.yaml]\nservices: {b: {image: b}}",
    "/srv/shop/db.yaml": "services: {db: {image: postgres}}",
  };
  expect(planOf("include: [a.yaml, b.yaml]", files).plan?.apps).toHaveLength(3);
  expect(troubles(planOf("include: [a.yaml]\nservices: {db: {image: mariadb}}", files))).toEqual([
    "error: services.db: /srv/shop/a.yaml defines it as well, in another way. Rename one of them, or lay a file over the included one: {path: [/srv/shop/a.yaml, changes.yaml]}.",
  ]);
});

/** Each file includes the next one twice, and the last one nothing. */
const DOUBLING = Object.fromEntries(
  Array.from({ length: 30 }, (_, at) => {
    const next = at < 29 ? `include: [${at + 1}.yaml, ${at + 1}.yaml]\n` : "";
    return [`/srv/shop/${at}.yaml`, `${next}services: {}`];
  }),
);

test.each([
  [
    "include: [a.yaml]",
    { "/srv/shop/a.yaml": "include: [compose.yaml]" },
    /include each other: .*compose\.yaml, .*a\.yaml/,
  ],
  ["include: [compose.yaml]", {}, /include each other/],
  ["include: [0.yaml]", DOUBLING, /More than 100 files are included/],
  ["include: [nowhere.yaml]", {}, /nowhere\.yaml cannot be found/],
  ["include: [{path: a.yaml, env_file: no.env}]", { "/srv/shop/a.yaml": WEB }, /no\.env cannot be found/],
  ["include: a.yaml", {}, /a list of files/],
  ["include: [{project_directory: x}]", {}, /names no file of this computer/],
  ["include: ['https://example.com/c.yaml']", {}, /names no file of this computer/],
  ["include: ['oci://docker.io/team/app:1']", {}, /names no file of this computer/],
  ["include: [a.yaml]", { "/srv/shop/a.yaml": "- a" }, /not a compose file/],
])("%s is refused with the reason", (compose, files, reason) => {
  expect(troubles(planOf(`${compose}\nservices: {own: {image: i}}`, files)).join("\n")).toMatch(reason);
});
