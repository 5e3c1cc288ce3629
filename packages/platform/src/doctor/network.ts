/** Whether machines can have the network that the settings ask for. */
import { access, constants } from "node:fs/promises";
import type { Settings } from "@hibernaut/settings";
import { type Diagnosis, examine } from "./diagnosis.ts";
import { checkTool, NETWORK_TOOLS } from "./tools.ts";

/** `bound` is the mode that the machines of the data directory belong to. */
export async function* checkNetwork(
  mode: Settings["network"],
  bound: "user" | "bridge" | undefined,
): AsyncIterable<Diagnosis> {
  const name = "network";
  const root = process.getuid?.() === 0;
  const free = mode === "auto" && bound === undefined;
  if (mode === "user" || (mode === "auto" && bound === "user") || (free && !root)) {
    const why =
      mode === "user"
        ? "as configured"
        : bound === "user"
          ? "to which the machines of the data directory belong"
          : "because a bridge needs root";
    yield { name, status: free ? "warn" : "ok", found: `user mode, ${why}; see docs/network.md` };
    return;
  }
  if (!root) {
    const found = mode === "auto" ? "the machines belong to a bridge, which needs root" : "a bridge needs root";
    const fix = mode === "auto" ? "run the platform as root" : "export HIBERNAUT_NETWORK=user";
    yield { name, status: "fail", found, fix };
  }
  // Without them, `auto` falls back to user mode, as long as there are no machines.
  const soften = ({ status, ...rest }: Diagnosis): Diagnosis => ({
    ...rest,
    status: status === "fail" && free ? "warn" : status,
  });
  for (const tool of NETWORK_TOOLS) yield soften(await checkTool(tool));
  yield soften(await checkTun());
  if (root) yield await checkFlowLimits();
}

/** Whether the kernel can count what each machine opens. Without nft, nothing is known. */
function checkFlowLimits(): Promise<Diagnosis> {
  return examine("connections", { status: "warn" }, async () => {
    const { acceptsRuleset } = await import("@hibernaut/network/bridge/commands");
    const { FLOW_PROBE } = await import("@hibernaut/network/bridge/limits");
    if (await acceptsRuleset(FLOW_PROBE)) return { status: "ok", found: "the kernel can count a machine's" };
    const found = "the kernel cannot count a machine's, so one machine can fill the host's table of them";
    return { status: "warn", found, fix: "modprobe nft_connlimit" };
  });
}

function checkTun(): Promise<Diagnosis> {
  return examine("/dev/net/tun", { status: "fail", fix: "modprobe tun" }, async () => {
    await access("/dev/net/tun", constants.R_OK | constants.W_OK);
    return { status: "ok", found: "can be opened" };
  });
}
