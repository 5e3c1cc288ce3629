/** A QEMU whose guest cannot continue, as far as the platform can tell: `node stand-in-qemu.ts <arguments of QEMU>`. */
import { standInQmp } from "./stand-in-qmp.ts";

const args = process.argv.slice(2);
const after = (option: string) => args[args.indexOf(option) + 1] ?? "";
const agent = args.find((each) => each.startsWith("socket,id=agent,")) ?? "";

process.stderr.write("KVM internal error. Suberror: 1\nemulation failure\nRAX=0000000000000000 RBX=0\n");
const path = /^unix:([^,]+)/.exec(after("-qmp"))?.[1] ?? "";
await standInQmp(path, { "query-status": { status: "internal-error", running: false } });
await standInQmp(/path=([^,]+)/.exec(agent)?.[1] ?? "");
setInterval(() => {}, 60_000);
