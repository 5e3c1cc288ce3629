import { mkdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { describe, expect, test } from "vitest";
import { brokenRules, checkImports, findImports, targetOf } from "../../../../scripts/check-imports.mjs";
import { RULES } from "../../../../scripts/import-rules.mjs";
import { tempFolder } from "../helpers/temp.ts";

const SRC = "packages/platform/src";

describe("findImports", () => {
  function found(text: string): string[] {
    return findImports(text).map(({ line, kind, specifier }) => `${line} ${kind} ${specifier}`);
  }

  test("finds every way to import", () => {
    const text = [
      'import a from "a";',
      'import { b } from "./b.ts";',
      'import type { C } from "../c.ts";',
      "import * as d from 'd';",
      'import "e";',
      'export { f } from "f";',
      'export * from "g";',
      'export type { H } from "h";',
      'const i = await import("i");',
      'import j, { type J } from "j";',
      "import {",
      "  k,",
      "  type K,",
      '} from "k";',
      'import type from "type-as-a-name";',
      'export * as l from "l";',
    ].join("\n");
    expect(found(text)).toEqual([
      "1 static a",
      "2 static ./b.ts",
      "3 type ../c.ts",
      "4 static d",
      "5 static e",
      "6 static f",
      "7 static g",
      "8 type h",
      "9 dynamic i",
      "10 static j",
      "11 static k",
      "15 static type-as-a-name",
      "16 static l",
    ]);
  });

  test("is not deceived by comments, strings, templates and expressions", () => {
    const text = [
      '// import a from "a";',
      "/**",
      ' * import b from "b";',
      " */",
      'const c = "// not a comment"; import d from "d";',
      'const e = `import f from "f";`;',
      "const g = /[\"'`]/;",
      'import h from "h";',
      'const i = "it\'s";',
      'import j from "j"; // "',
      'export const k = "k";',
      'export function from(path: string) { return path + "l"; }',
    ].join("\n");
    expect(found(text)).toEqual(["5 static d", "8 static h", "10 static j"]);
  });
});

test("targetOf names files of the repository by their path", () => {
  expect(targetOf(`${SRC}/machines/a.ts`, "../store/contract.ts")).toBe(`${SRC}/store/contract.ts`);
  expect(targetOf(`${SRC}/server.ts`, "./api/app.ts")).toBe(`${SRC}/api/app.ts`);
  expect(targetOf("packages/cli/src/serve.ts", "@hibernaut/platform/server.ts")).toBe(`${SRC}/server.ts`);
  expect(targetOf("packages/cli/src/serve.ts", "@hibernaut/platform")).toBe(`${SRC}/index.ts`);
  expect(targetOf("packages/cli/src/serve.ts", "node:fs/promises")).toBe("node:fs/promises");
});

describe("the rules", () => {
  function allowed(file: string, specifier: string, kind: "static" | "type" | "dynamic" = "static"): boolean {
    return brokenRules(file, { specifier, kind }).length === 0;
  }

  test("each gives a reason", () => {
    for (const rule of RULES) expect(rule.reason.length, rule.name).toBeGreaterThan(20);
    expect(new Set(RULES.map((rule) => rule.name)).size).toBe(RULES.length);
  });

  test.each([
    "./types.ts",
    "./effects/boot.ts",
    "../hypervisor/contract.ts",
    "../store/contract.ts",
    "../guest/frame.ts",
    "../snapshots/manifest.ts",
    "../domain/errors.ts",
    "../lib/text.ts",
    "../settings.ts",
    "typebox",
    "typebox/value",
    "node:fs",
    "node:fs/promises",
  ])("machines may import %s", (specifier) => {
    expect(allowed(`${SRC}/machines/controller.ts`, specifier)).toBe(true);
  });

  test.each([
    "node:http",
    "node:net",
    "node:sqlite",
    "better-sqlite3",
    "fastify",
    "pino",
    "../hypervisor/qemu/qmp.ts",
    "../hypervisor/fake/fake.ts",
    "../store/machines.ts",
    "../images/store.ts",
    "../network/user.ts",
    "../api/app.ts",
    "../proxy/route.ts",
    "../server.ts",
    "@hibernaut/client",
  ])("machines may not import %s", (specifier) => {
    expect(allowed(`${SRC}/machines/controller.ts`, specifier)).toBe(false);
    expect(allowed(`${SRC}/machines/effects/boot.ts`, specifier.replace(/^\.\.\//, "../../"), "type")).toBe(false);
  });

  test.each(["hypervisor/qemu/a.ts", "network/user.ts", "images/store.ts", "store/machines.ts", "guest/agent.ts"])(
    "%s does not look up",
    (name) => {
      const up = name.split("/").length === 3 ? "../.." : "..";
      expect(allowed(`${SRC}/${name}`, `${up}/domain/machine.ts`)).toBe(true);
      expect(allowed(`${SRC}/${name}`, `${up}/domain/config.ts`)).toBe(true);
      expect(allowed(`${SRC}/${name}`, `${up}/machines/controller.ts`)).toBe(false);
      expect(allowed(`${SRC}/${name}`, `${up}/api/app.ts`)).toBe(false);
      expect(allowed(`${SRC}/${name}`, `${up}/proxy/route.ts`, "type")).toBe(false);
    },
  );

  test.each(["api", "proxy"])("%s knows machines and contracts, and nothing behind them", (part) => {
    const file = `${SRC}/${part}/a.ts`;
    for (const specifier of ["../machines/service.ts", "../store/contract.ts", "./b.ts", "fastify", "node:net"]) {
      expect(allowed(file, specifier), specifier).toBe(true);
    }
    const other = part === "api" ? "../proxy/a.ts" : "../api/a.ts";
    for (const specifier of ["../hypervisor/qemu/qmp.ts", "../store/machines.ts", "../images/store.ts", other]) {
      expect(allowed(file, specifier), specifier).toBe(false);
    }
  });

  test("server.ts and doctor.ts may import everything, and nothing imports them", () => {
    for (const root of ["server.ts", "doctor.ts"]) {
      for (const specifier of [
        "./api/app.ts",
        "./store/store.ts",
        "./hypervisor/qemu/qmp.ts",
        "./machines/manager.ts",
      ]) {
        expect(allowed(`${SRC}/${root}`, specifier), specifier).toBe(true);
      }
      expect(allowed(`${SRC}/api/app.ts`, `../${root}`)).toBe(false);
      expect(allowed(`${SRC}/${root}`, "@hibernaut/client")).toBe(false);
    }
  });

  test("the command line loads the platform in serve and doctor, and late", () => {
    for (const name of ["serve.ts", "commands/serve.ts", "commands/doctor.ts"]) {
      expect(allowed(`packages/cli/src/${name}`, "@hibernaut/platform/server.ts", "dynamic")).toBe(true);
      expect(allowed(`packages/cli/src/${name}`, "@hibernaut/platform/server.ts")).toBe(false);
    }
    for (const kind of ["static", "type", "dynamic"] as const) {
      expect(allowed("packages/cli/src/commands/machine.ts", "../../../platform/src/lib/text.ts", kind)).toBe(false);
    }
    expect(allowed("packages/cli/src/commands/machine.ts", "@hibernaut/client")).toBe(true);
  });

  test("the client takes types only", () => {
    const file = "packages/client/src/index.ts";
    expect(allowed(file, "@hibernaut/platform/domain/machine.ts", "type")).toBe(true);
    expect(allowed(file, "@hibernaut/platform/domain/machine.ts")).toBe(false);
    expect(allowed(file, "@hibernaut/platform/domain/machine.ts", "dynamic")).toBe(false);
  });
});

describe("checkImports", () => {
  /** A small tree of packages with the given files on top of enough harmless ones. */
  async function tree(files: Record<string, string>): Promise<string> {
    const root = await tempFolder("imports");
    const all = Object.fromEntries(
      Array.from({ length: 25 }, (_, index) => [`packages/platform/src/a${index}.ts`, 'import "node:fs";\n']),
    );
    Object.assign(all, {
      "packages/client/src/index.ts": 'import "node:fs";',
      "packages/cli/src/main.ts": 'import "node:fs";',
    });
    for (const [name, text] of Object.entries({ ...all, ...files })) {
      await mkdir(dirname(join(root, name)), { recursive: true });
      await writeFile(join(root, name), text);
    }
    return root;
  }

  test("passes a tree that keeps the rules", async () => {
    expect(checkImports(await tree({}))).toEqual({ faults: [], files: 27, imports: 27 });
  });

  test("names file, line, import and reason", async () => {
    const root = await tree({ "packages/platform/src/machines/x.ts": '\nimport { a } from "../api/app.ts";\n' });
    const { faults } = checkImports(root);
    expect(faults[0]).toMatch(/^packages\/platform\/src\/machines\/x\.ts:2 imports \.\.\/api\/app\.ts: .* because /);
  });

  test("fails when it read nothing", async () => {
    const root = await tempFolder("imports");
    await mkdir(join(root, "packages"));
    expect(checkImports(root).faults).toContain("packages/platform/src: read 0 files, expected 20 or more");
  });

  test("fails when it found no imports", async () => {
    const root = await tree({});
    for (let index = 0; index < 25; index += 1) await writeFile(join(root, `packages/platform/src/a${index}.ts`), "");
    expect(checkImports(root).faults).toEqual(["found only 2 imports in 27 files"]);
  });
});
