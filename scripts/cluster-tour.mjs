#!/usr/bin/env node
/**
 * `npm run cluster:tour`: three hosts on this machine, each with its own network, data directory and etcd, become one
 * cluster. A machine sleeps on the first host, wakes for a request to the second, and moves to the third in its sleep.
 * Needs root, for network namespaces. Leaves nothing behind.
 */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Lab } from "./lab/lab.mjs";
import { ROOT } from "./lib/node.mjs";
import { createProgress } from "./lib/progress.mjs";
import { SetupError } from "./lib/run.mjs";
import { setup } from "./setup.mjs";

const APP = "counter";
const IMAGE = `oci:${join(ROOT, ".build/counter")}:latest`;
const STEPS = 7;
const USAGE = `Usage: sudo npm run cluster:tour

Make three hosts on this machine, let them form a cluster, and show a machine sleep on one, wake through another, and move
to the third. Leaves nothing behind.
`;

/** @param {string[]} lines */
const show = (...lines) => process.stderr.write(lines.map((line) => `        ${line}\n`).join(""));

async function clusterTour() {
  if (process.getuid?.() !== 0)
    throw new SetupError("The tour makes hosts of network namespaces, which needs root: sudo npm run cluster:tour");
  await setup({ quiet: true, tests: true });
  const folder = await mkdtemp(join(tmpdir(), "hibernaut-tour-"));
  const progress = createProgress(STEPS, { everyStep: true });
  /** @type {Lab | undefined} */
  let lab;
  const stop = () => void lab?.close().finally(() => process.exit(130));
  for (const signal of ["SIGINT", "SIGTERM"]) process.once(signal, stop);
  try {
    const open = (lab = new Lab({ directory: folder, names: ["alpha", "beta", "gamma"] }));
    await progress.step("make three hosts, and etcd on each", () => open.open());
    await progress.step("join them to a cluster, and start their platforms", async (step) => {
      await open.join((name) => step.detail(name));
      await open.start();
    });
    const [alpha, beta, gamma] = open.hosts;
    if (!alpha || !beta || !gamma) throw new Error("there are three hosts");
    show(...(await beta.cli("cluster", "status")).trimEnd().split("\n"));
    const machine = await progress.step("on beta, create a machine for alpha", async () => {
      await beta.cli("apps", "create", APP);
      const said = await beta.cli(
        ...["machine", "run", IMAGE, "--app", APP, "--name", "traveller", "--host", "alpha"],
        ...["--port", "8080", "--autostop", "suspend", "--json"],
      );
      return JSON.parse(said);
    });
    const first = await open.ask(alpha, APP, "/");
    show(`through alpha: ${first.text}  (${first.took} ms)`);
    await progress.step("it sleeps on alpha", () => gamma.cli("machine", "suspend", "traveller", "--app", APP));
    const second = await progress.step("a request to beta wakes it", () => open.ask(beta, APP, "/"));
    show(`through beta:  ${second.text}  (${second.took} ms, ${second.wake})`);
    await alpha.cli("machine", "suspend", "traveller", "--app", APP);
    await progress.step("it moves to gamma in its sleep", () =>
      beta.cli("machine", "move", "traveller", "--app", APP, "--host", "gamma"),
    );
    const third = await progress.step("a request to alpha wakes it there", () => open.ask(alpha, APP, "/"));
    show(`through alpha: ${third.text}  (${third.took} ms, ${third.wake})`);
    show(...(await gamma.cli("machine", "list", "--app", APP)).trimEnd().split("\n"));
    const [before, after] = [first, third].map(({ text }) => JSON.parse(text));
    const kept = before.nonce === after.nonce && after.count === before.count + 2;
    show(kept ? "Its memory was kept: the same process continued counting." : "Its memory was LOST.");
    await alpha.cli("apps", "destroy", APP, "--force", "--yes");
    return kept && machine ? 0 : 1;
  } finally {
    await lab?.close();
    await rm(folder, { recursive: true, force: true });
  }
}

try {
  if (process.argv.includes("--help")) process.stdout.write(USAGE);
  else process.exitCode = await clusterTour();
} catch (error) {
  const expected = error instanceof SetupError;
  process.stderr.write(`${error instanceof Error ? (expected ? error.message : error.stack) : String(error)}\n`);
  process.exitCode = 1;
}
