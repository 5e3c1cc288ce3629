/** Whether machines can have the network that the settings ask for. */
import { access, constants } from "node:fs/promises";
import { messageOf } from "@hibernaut/lib/text";
import type { Settings } from "@hibernaut/settings";
import type { Diagnosis } from "./diagnosis.ts";
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
async function checkFlowLimits(): Promise<Diagnosis> {
  const name = "connections";
  try {
    const { acceptsRuleset } = await import("@hibernaut/network/bridge/commands");
    const { FLOW_PROBE } = await import("@hibernaut/network/bridge/limits");
    if (await acceptsRuleset(FLOW_PROBE)) return { name, status: "ok", found: "the kernel can count a machine's" };
    const found = "the kernel cannot count a machine's, so one machine can fill the host's table of them";
    return { name, status: "warn", found, fix: "modprobe nft_connlimit" };
  } catch (error) {
    return { name, status: "warn", found: messageOf(error) };
  }
}

async function checkTun(): Promise<Diagnosis> {
  const name = "/dev/net/tun";
  try {
    await access(name, constants.R_OK | constants.W_OK);
    return { name, status: "ok", found: "can be opened" };
  } catch (error) {
    return { name, status: "fail", found: messageOf(error), fix: "modprobe tun" };
  }
}
