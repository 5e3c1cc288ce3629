/** Checks what the platform needs from its host, and names a command to repair each fault. */
import type { Settings } from "@hibernaut/settings";
import { checkBackups } from "./doctor/backups.ts";
import { checkCopies, checkDataDir, checkDisk, checkSocketPath } from "./doctor/data-directory.ts";
import type { Diagnosis } from "./doctor/diagnosis.ts";
import {
  builtBundle,
  checkAccelerator,
  checkJail,
  checkKvmDevice,
  checkMemories,
  checkNode,
  checkQemu,
} from "./doctor/hypervisor.ts";
import { checkNetwork } from "./doctor/network.ts";
import {
  checkCertificates,
  checkEtcd,
  checkQuotas,
  checkSnapshots,
  checkVolumes,
  sleepersOf,
} from "./doctor/records.ts";
import { checkTool, TOOLS } from "./doctor/tools.ts";

/**
 * Checks the host, in the order in which repairs make sense. Never rejects: a check that cannot be made counts as failed, and
 * each loads the part that it examines, so that a broken one does not keep the others from being checked.
 *
 * @example
 * for await (const check of diagnose(settings)) console.log(check.status, check.name, check.found);
 */
export async function* diagnose(settings: Settings): AsyncIterable<Diagnosis> {
  yield checkNode(process.versions.node);
  yield await checkQemu(settings.qemu);
  for (const tool of TOOLS) yield await checkTool(tool);
  const sleepers = await sleepersOf(settings.dataDir);
  yield* checkNetwork(settings.network, typeof sleepers === "string" ? undefined : sleepers.bound);
  yield checkSocketPath(settings.dataDir);
  const dataDir = await checkDataDir(settings.dataDir);
  yield dataDir;
  yield await checkDisk(settings.dataDir);
  if (dataDir.status === "ok") yield await checkCopies(settings.dataDir);
  yield* checkVolumes(settings.dataDir);
  yield* checkCertificates(settings.dataDir);
  yield* checkBackups(settings);
  yield* checkQuotas(settings);
  yield* checkEtcd(settings.dataDir);
  const bundle = await builtBundle(settings.guestBundle);
  yield typeof bundle === "string"
    ? { name: "guest bundle", status: "fail", found: bundle, fix: "npm run setup" }
    : { name: "guest bundle", status: "ok", found: `version ${bundle.version} in ${settings.guestBundle}` };
  yield await checkKvmDevice();
  if (typeof bundle === "string") return;
  const { verdict, ...diagnosis } = await checkAccelerator(settings, bundle);
  yield diagnosis;
  yield await checkJail(settings, verdict?.accelerator ?? "tcg");
  if (dataDir.status === "ok") yield await checkMemories(settings, verdict?.accelerator ?? "tcg");
  if (verdict !== undefined) yield await checkSnapshots(sleepers, settings, { bundle, ...verdict });
}
