/** What documents tell people to type, with the oldest Node that the README calls enough. */
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { globSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { expect, onTestFinished, test } from "vitest";
import { oldNode } from "../../../../scripts/lib/test-nodes.mjs";
import { tempFolder } from "../helpers/temp.ts";

const ROOT = join(import.meta.dirname, "../../../..");
const NODE_18 = oldNode("18");
/** Node 18 first: this user does not have the Node that setup brings. */
const PATH = `${dirname(NODE_18)}:/usr/bin:/bin`;
const DOCUMENTS = globSync(["*.md", "{docs,bench}/**/*.md", "{packages,services}/*/*.md"], { cwd: ROOT });
const { scripts } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8")) as { scripts: Record<string, string> };

/** Programs that documents run by name, and scripts that they run with npm: `node <file>`. */
function documented(): Set<string> {
  const found = new Set<string>();
  for (const file of DOCUMENTS) {
    for (const [line] of readFileSync(join(ROOT, file), "utf8").matchAll(/^ {4}.*$|`[^`\n]+`/gm)) {
      for (const [, program = ""] of line.matchAll(/(?:^ {4}|`|&& )node ([\w./-]+)/g)) found.add(program);
      for (const [, name = ""] of line.matchAll(/\bnpm run (?:--silent )?([\w:-]+)/g)) {
        const script = scripts[name];
        expect(script, `npm run ${name} in ${file}`).toBeDefined();
        const program = /^node (\S+)/.exec(script ?? "")?.[1];
        if (program !== undefined) found.add(program);
      }
    }
  }
  return found;
}

const run = (args: string[], env: Record<string, string> = {}) =>
  promisify(execFile)(NODE_18, args, { cwd: ROOT, env: { PATH, HOME: "/nonexistent", ...env } });

const ORDERS = "scripts/orders.mjs";
/** How each of the others shows that it runs, without minutes of work. */
const TRIALS: Record<string, () => Promise<unknown>> = {
  "scripts/setup.mjs": () => run(["scripts/setup.mjs", "--help"]),
  "scripts/up.mjs": () => run(["scripts/up.mjs", "--help"]),
  "scripts/test.mjs": () => run(["scripts/test.mjs", "--help"]),
  "scripts/package.mjs": () => run(["scripts/package.mjs", "--help"]),
  // They find that there is nothing to do.
  "packages/guest/build.mjs": () => run(["packages/guest/build.mjs"]),
  "scripts/cluster-tour.mjs": () => run(["scripts/cluster-tour.mjs", "--help"]),
  "packages/jail/build.mjs": () => run(["packages/jail/build.mjs"]),
};
/** For contributors, who put the Node that setup brings first on their PATH. */
const NEWER =
  /^(scripts\/(build|check|client-types|screenshots|tape)\.mjs|bench\/.*|packages\/sandboxes\/suite\/(run|python)\.mjs|packages\/fly\/conformance\/(run|flyctl)\.mjs)$/;

test("every program that a document runs is tried here", () => {
  const programs = [...documented()].filter((program) => !NEWER.test(program));
  expect(programs.sort()).toEqual([...Object.keys(TRIALS), ORDERS].sort());
});

test.each(Object.entries(TRIALS))("%s runs", async (_name, trial) => {
  await trial();
});

// It starts a service and fills a database, which the service's own tests do as well.
test(`${ORDERS} runs`, { tags: "again" }, tryOrders);

/** The service's README: start it, fill its database, ask it. */
async function tryOrders(): Promise<void> {
  const folder = await tempFolder("orders");
  const env = { PATH, HOME: folder, PORT: "0", ORDERS_SQLITE_PATH: join(folder, "orders.db") };
  const child = spawn(NODE_18, ["scripts/orders.mjs"], { cwd: ROOT, env, stdio: ["ignore", "pipe", "inherit"] });
  const ended = once(child, "exit");
  onTestFinished(async () => {
    child.kill("SIGTERM");
    expect(await ended).toEqual([0, null]);
  });
  let said = "";
  let url: string | undefined;
  for await (const chunk of child.stdout.iterator({ destroyOnReturn: false })) {
    said += String(chunk);
    url = /"url":"([^"]+)"/.exec(said)?.[1];
    if (url !== undefined) break;
  }
  await run(["scripts/orders.mjs", "seed", "--size", "small"], env);
  const found = (await (await fetch(`${url}/products?name=tea`)).json()) as { items: unknown[] };
  expect(found.items).toHaveLength(2);
}
