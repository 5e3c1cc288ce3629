/** Looks at a platform after a cut, over its API: first at what it says, then into each machine. */
import type { HibernautClient } from "@hibernaut/client";
import type { Breeder } from "./breeder.ts";
import type { After, MachineAfter, MachineEvent } from "./journal.ts";
import type { Runner, Site } from "./runner.ts";

const WAIT_S = 300;
/**
 * A QEMU that does not answer within the platform's limits fails its start and loses nothing. In an emulated machine on a
 * busy host that happens, and the next start has a host that is less busy.
 */
const STARTS = 3;
/** The API's largest page. */
const EVENTS = 1000;

/** Returns everything that is stored, by the keys of the journal. Waits until machines on paper rest. */
async function readStored(client: HibernautClient): Promise<Record<string, string>> {
  const stored: Record<string, string> = {};
  for (const { name } of await client.listTokens()) stored[`token ${name.replace(/^token-/, "")}`] = "there";
  for (const { name: app } of await client.listApps()) {
    stored[`app ${app}`] = "there";
    for (const { name } of await client.listSecrets(app)) stored[`secret ${app}/${name}`] = "there";
    for (const { name, size_gb: size } of await client.listVolumes(app)) stored[`volume ${app}/${name}`] = `${size} GB`;
    for (const name of await client.listHostnames(app)) stored[`hostname ${app}/${name}`] = "there";
    // Nobody reports on a release whose client is gone, so in time it counts as abandoned.
    for (const { description, status } of await client.listReleases(app, { limit: EVENTS }))
      stored[`release ${app}/${description}`] = status === "abandoned" ? "pending" : status;
    Object.assign(stored, await machinesOf(client, app));
  }
  return stored;
}

/** A runner's machine has no name of its own in the journal; one on paper has its name and its revision. */
async function machinesOf(client: HibernautClient, app: string): Promise<Record<string, string>> {
  const stored: Record<string, string> = {};
  for (const { id, name, config, state } of await client.listMachines(app)) {
    if (state === "destroyed") continue;
    if (!name.startsWith("paper-")) stored[`machine ${app}`] = "there";
    else if (state === "destroying") await client.waitForMachine(app, id, { state: "destroyed", timeout: WAIT_S });
    else stored[`machine ${app}/${name}`] = config.env?.["REVISION"] ?? "";
  }
  return stored;
}

/** How a machine is before anyone acts on it, and what has happened to it since the power failed. */
async function describeMachine(
  site: Site,
  runner: Runner,
  { id, since }: { id: string; since: Date },
): Promise<MachineAfter> {
  const { client } = site;
  await runner.settle(site, id);
  const { state, state_reason: stateReason, last_boot: boot } = await client.getMachine(runner.app, id);
  const events: MachineEvent[] = (await client.listMachineEvents(runner.app, id, { limit: EVENTS })).filter(
    ({ at }) => new Date(at) >= since,
  );
  const mine = boot !== null && new Date(boot.at) >= since ? boot : null;
  return { state, stateReason, events, boot: mine, answer: null, lines: null, refusal: null };
}

/** Starts a machine unless recovery has, and looks into it. */
async function openMachine(site: Site, runner: Runner, id: string, seen: MachineAfter): Promise<MachineAfter> {
  let { state } = seen;
  for (let start = 0; state !== "running" && start < STARTS; start += 1) state = await runner.order(site, id, "start");
  const { last_boot: boot, state_reason: reason } = await site.client.getMachine(runner.app, id);
  if (state !== "running" || boot === null) return { ...seen, refusal: reason ?? `it is ${state}` };
  const answer = (await runner.ask(site, id)) ?? null;
  const lines = (await runner.read(site)) ?? null;
  const refusal = answer === null || lines === null ? "its app does not answer" : null;
  return { ...seen, boot: { kind: boot.kind, reason: boot.reason }, answer, lines, refusal };
}

/**
 * Everything after a cut, with the machines opened. What the survey itself asks of them goes into the journal of `site`,
 * which is another one than that of before the cut.
 */
export async function survey(
  site: Site,
  { runners, breeder }: { runners: readonly Runner[]; breeder: Breeder },
  since: Date,
): Promise<After> {
  const machines: Record<string, MachineAfter> = {};
  // One after another, because each start takes all the time that an emulated processor has.
  for (const runner of runners) {
    const machine = await runner.find(site);
    if (machine === undefined) continue;
    const seen = await describeMachine(site, runner, { id: machine.id, since });
    machines[machine.id] = await openMachine(site, runner, machine.id, seen);
  }
  const stored = await readStored(site.client);
  return { stored: { ...stored, ...(await breeder.survey(site)) }, machines };
}
