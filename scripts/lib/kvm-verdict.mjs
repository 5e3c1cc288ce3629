/** Prints as JSON whether KVM runs guests on this host, and why not. Needs Node 24, and the guest bundle of the setup. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { readBundle } from "@hibernaut/guest/bundles";
import { proveAccelerator } from "@hibernaut/hypervisor/qemu/accelerator";
import { readSettings } from "@hibernaut/settings";

/** The proof ends by itself. This is the bound for a QEMU that does not even say its version. */
const LIMIT_MS = 15 * 60_000;

const dataDir = await mkdtemp(join(tmpdir(), "hibernaut-kvm-verdict-"));
try {
  const settings = { ...readSettings(process.env), accelerator: /** @type {const} */ ("auto"), dataDir };
  const bundle = await readBundle(settings.guestBundle);
  console.log(JSON.stringify(await proveAccelerator(settings, bundle, AbortSignal.timeout(LIMIT_MS))));
} finally {
  await rm(dataDir, { recursive: true, force: true });
}
