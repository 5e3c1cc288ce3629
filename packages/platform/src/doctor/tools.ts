/** Whether the programs that the platform runs are installed. */
import { run } from "@hibernaut/lib/exec";
import { messageOf } from "@hibernaut/lib/text";
import type { Diagnosis } from "./diagnosis.ts";

/** How long a program may take to tell its version. */
const TOOL_TIMEOUT_MS = 10_000;

/** The programs that the platform runs, how to ask for their version, and their Debian packages. */
export const TOOLS = [
  { name: "skopeo", args: ["--version"], package: "skopeo", for: "copies images that are not in a registry" },
  { name: "sqfstar", args: ["-version"], package: "squashfs-tools", for: "packs root file systems" },
  { name: "mkfs.ext4", args: ["-V"], package: "e2fsprogs", for: "makes writable layers" },
  { name: "setpriv", args: ["--version"], package: "util-linux", for: "ends imports with the platform" },
] as const;

/** What the bridge network needs in addition to root. */
export const NETWORK_TOOLS = [
  { name: "ip", args: ["-Version"], package: "iproute2", for: "makes the machines' network" },
  { name: "nft", args: ["--version"], package: "nftables", for: "keeps machines apart" },
] as const;

export async function checkTool(tool: (typeof TOOLS | typeof NETWORK_TOOLS)[number]): Promise<Diagnosis> {
  const { name } = tool;
  try {
    const { stdout, stderr } = await run(name, tool.args, { timeoutMs: TOOL_TIMEOUT_MS });
    const [line = ""] = `${stdout}\n${stderr}`.trim().split("\n");
    return { name, status: "ok", found: line.trim() };
  } catch (error) {
    const missing = (error as NodeJS.ErrnoException).code === "ENOENT";
    const found = missing ? `not installed; it ${tool.for}` : messageOf(error);
    return { name, status: "fail", found, fix: `apt-get install -y ${tool.package}` };
  }
}
