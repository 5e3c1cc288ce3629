/** The rules of .dependency-cruiser.mjs, held against a small tree of packages that breaks each of them. */
import { mkdir, symlink, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { cruise, type ICruiseResult } from "dependency-cruiser";
import { beforeAll, expect, test } from "vitest";
import configuration from "../../../../.dependency-cruiser.mjs";
import { useTempFolder } from "../helpers/temp.ts";

const SRC = "packages/platform/src";
const CLI = "packages/cli/src/commands";
const PLATFORM = '"@hibernaut/platform/version.ts"';
const CLIENT_ONLY = "the-cli-reaches-the-platform-through-the-client";
const { forbidden = [], options = {} } = configuration;

/** Packages that the platform's other parts know by their contracts only. */
const PARTS = [
  ...["hypervisor", "store", "images", "network", "secrets", "volumes", "certs"],
  ...["guest", "snapshots", "machines", "checks", "telemetry"],
  ...["events", "metering", "backup", "cluster", "proxy", "sandboxes", "fly", "api"],
];

/** Imports that must be refused: file, import, the rule that refuses it. */
const REFUSED: [file: string, code: string, rule: string][] = [
  ["packages/machines/src/http.ts", 'import "node:http";', "machines-opens-no-sockets-or-databases"],
  ["packages/machines/src/net.ts", 'import "node:net";', "machines-opens-no-sockets-or-databases"],
  ["packages/machines/src/log.ts", 'import "@hibernaut/platform/version.ts";', "machines-knows-contracts-only"],
  ["packages/machines/src/client.ts", 'import "@hibernaut/client";', "machines-knows-contracts-only"],
  ["packages/machines/src/type.ts", 'import type { A } from "@hibernaut/store/open";', "machines-knows-contracts-only"],
  ...PARTS.map((part): [string, string, string] => [
    `${SRC}/metrics/${part}.ts`,
    `import "@hibernaut/${part}/open";`,
    `only-${part}-contract-is-public`,
  ]),
  [`${SRC}/metrics/door.ts`, 'import "@hibernaut/proxy";', "nothing-imports-proxy"],
  ["packages/proxy/src/http/index.ts", 'import "@hibernaut/machines";', "the-http-engine-works-alone"],
  [`${SRC}/metrics/doors.ts`, 'import "@hibernaut/api";', "nothing-imports-api"],
  ["packages/machines/src/cluster.ts", 'import "@hibernaut/cluster";', "machines-knows-contracts-only"],
  ["packages/domain/src/up.ts", 'import type { A } from "@hibernaut/store";', "domain-is-the-floor"],
  ["packages/connections/src/up.ts", 'import "@hibernaut/platform/version.ts";', "nothing-below-imports-the-platform"],
  ["packages/settings/src/up.ts", 'import "@hibernaut/client";', "the-platform-does-not-know-its-users"],
  [`${CLI}/b.ts`, 'await import("@hibernaut/settings");', CLIENT_ONLY],
  ["packages/lib/src/up.ts", 'import "@hibernaut/domain/machine";', "lib-stands-alone"],
  ["packages/machines/src/door.ts", 'import "../../domain/src/machine.ts";', "packages-share-what-they-export"],
  [`${SRC}/metrics/root.ts`, 'import "../server.ts";', "nothing-imports-the-composition-root"],
  ["packages/events/src/machines.ts", 'import type { A } from "@hibernaut/machines";', "events-know-no-machines"],
  ["packages/events/src/webhooks/qemu.ts", 'import "@hibernaut/hypervisor";', "events-know-no-machines"],
  [`${SRC}/metrics/client.ts`, 'import "../../../client/src/index.ts";', "the-platform-does-not-know-its-users"],
  [`${CLI}/a.ts`, `await import(${PLATFORM});`, CLIENT_ONLY],
  [`${CLI}/unserve.ts`, `import type { A } from ${PLATFORM};`, CLIENT_ONLY],
  [`${CLI}/doctor.ts`, 'import "@hibernaut/platform/doctor.ts";', "serve-and-doctor-load-the-platform-late"],
  ["packages/client/src/late.ts", 'await import("@hibernaut/platform/version.ts");', "the-client-is-only-a-client"],
  ["packages/client/src/now.ts", 'import "@hibernaut/platform/version.ts";', "the-client-is-only-a-client"],
  ["packages/mcp/src/a.ts", 'import type { A } from "@hibernaut/domain/machine";', "the-mcp-server-is-a-client"],
  ["packages/settings/src/tools.ts", 'import "@hibernaut/mcp";', "the-platform-does-not-know-its-users"],
  ["packages/dashboard/src/a.ts", 'import "node:fs";', "the-dashboard-is-a-client-in-a-browser"],
  ["packages/dashboard/src/b.ts", 'import "../../client/src/index.ts";', "the-dashboard-is-a-client-in-a-browser"],
  [`${SRC}/metrics/pages.ts`, 'import "../../../dashboard/src/a.ts";', "nothing-imports-the-dashboard"],
  ["packages/client/src/browser.ts", 'import "./streams.ts";', "the-browser-client-needs-no-node"],
  [
    "services/orders/src/a.ts",
    'import "../../../packages/client/src/index.ts";',
    "services-know-nothing-of-the-platform",
  ],
  ["packages/cli/src/b.ts", 'import "../../../services/orders/src/c.ts";', "packages-know-no-service"],
  [`${SRC}/checks/one.ts`, 'import type { A } from "./two.ts";', "no-file-cycles"],
  [`${SRC}/audit/a.ts`, 'import type { A } from "../tracing/contract.ts";', "no-folder-cycles"],
];

/** Imports that must pass. */
const ALLOWED: [file: string, code: string][] = [
  ["packages/machines/src/fine.ts", 'import "node:fs/promises"; import "./controller.ts"; import "@hibernaut/store";'],
  ["packages/machines/src/effects/fine.ts", 'import "@hibernaut/guest"; import "@hibernaut/domain/machine";'],
  ["packages/machines/src/late.ts", 'import "@hibernaut/settings"; import "@hibernaut/snapshots";'],
  ["packages/api/src/fine.ts", 'import "@hibernaut/machines"; import "@hibernaut/store"; import "node:net";'],
  ["packages/events/src/webhooks/fine.ts", 'import "@hibernaut/store"; import "node:dns";'],
  [`${SRC}/server.ts`, 'import "@hibernaut/api"; import "@hibernaut/store/open"; import "@hibernaut/hypervisor/open";'],
  [`${SRC}/doctor.ts`, 'import "@hibernaut/hypervisor/open";'],
  [`${CLI}/serve.ts`, 'await import("@hibernaut/platform/server.ts");'],
  ["packages/cli/src/times.ts", 'import "@hibernaut/lib/quantities";'],
  ["packages/cli/src/names.ts", 'import "@hibernaut/domain/naming";'],
  ["packages/dashboard/src/fine.ts", 'import "./parts/fine.ts"; import "@hibernaut/client/browser";'],
  ["packages/client/src/fine.ts", 'import type { A } from "@hibernaut/domain/machine";'],
];

/** What the imports above point at. */
const TARGETS: Record<string, string> = {
  "packages/client/src/index.ts": "",
  "packages/mcp/src/index.ts": "",
  "packages/client/src/streams.ts": 'import "node:stream";',
  "packages/dashboard/src/parts/fine.ts": "",
  "services/orders/src/c.ts": "",
  ...Object.fromEntries(
    [
      ...PARTS.flatMap((part) => [`${part}/src/contract`, `${part}/src/open`]),
      ...["machines/src/controller", "domain/src/machine", "domain/src/naming", "lib/src/quantities"],
      ...["settings/src/settings", "platform/src/version", "platform/src/audit/contract"],
    ].map((name) => [`packages/${name}.ts`, "export type A = 1;"]),
  ),
  [`${SRC}/checks/two.ts`]: 'import type { A } from "./one.ts"; export type A = 1;',
  [`${SRC}/tracing/contract.ts`]: 'import type { A } from "../audit/contract.ts"; export type A = 1;',
};

const folder = useTempFolder("imports");
let violations: string[];

beforeAll(async () => {
  const root = folder.path;
  const files: Record<string, string> = Object.fromEntries([
    ...Object.entries(TARGETS),
    ...REFUSED.map(([file, code]) => [file, code]),
    ...ALLOWED,
  ]);
  for (const [name, text] of Object.entries(files)) {
    await mkdir(dirname(join(root, name)), { recursive: true });
    await writeFile(join(root, name), `${text}\n`);
  }
  await mkdir(join(root, "node_modules/@hibernaut"), { recursive: true });
  const exported = {
    client: { ".": "./src/index.ts" },
    mcp: { ".": "./src/index.ts" },
    platform: { "./*": "./src/*" },
    settings: { ".": "./src/settings.ts" },
    domain: { "./*": "./src/*.ts" },
    lib: { "./*": "./src/*.ts" },
    ...Object.fromEntries(PARTS.map((part) => [part, { ".": "./src/contract.ts", "./open": "./src/open.ts" }])),
  };
  for (const [name, exports] of Object.entries(exported)) {
    const manifest = { name: `@hibernaut/${name}`, exports };
    await writeFile(join(root, `packages/${name}/package.json`), JSON.stringify(manifest));
    await symlink(`../../packages/${name}`, join(root, `node_modules/@hibernaut/${name}`));
  }
  const { output } = await cruise(
    ["packages", "services"],
    { ...options, baseDir: root, validate: true, ruleSet: { forbidden } },
    { ...options.enhancedResolveOptions },
  );
  violations = (output as ICruiseResult).summary.violations.map(({ rule, from }) => `${rule.name} ${from}`);
});

test.each(REFUSED)("%s: %s breaks %s", (file, _code, rule) => {
  const from = rule === "no-folder-cycles" ? dirname(file) : file;
  expect(violations).toContain(`${rule} ${from}`);
});

test.each(ALLOWED)("%s may: %s", (file) => {
  expect(violations.filter((violation) => violation.endsWith(` ${file}`))).toEqual([]);
});

test("each rule has a reason, a name of its own and an import above that breaks it", () => {
  for (const { name, comment } of forbidden) expect(comment?.length, name).toBeGreaterThan(20);
  const names = forbidden.map(({ name }) => name);
  expect(new Set(names).size).toBe(names.length);
  const broken = new Set(REFUSED.map(([, , rule]) => rule));
  expect(names.filter((name) => name !== undefined && !broken.has(name))).toEqual([]);
});
