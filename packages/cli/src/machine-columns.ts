/** Cells about machines that several tables have. */
import type { Machine } from "@hibernaut/client";
import { DEFAULT_CPUS, DEFAULT_MEMORY_MB } from "./defaults.ts";
import { ago } from "./terminal.ts";

/** What lists of machines add with `-o wide`. */
export const WIDE_MACHINE = {
  head: ["CPUS", "ADDRESS", "LAST START", "VERSION", "CREATED"],
  row: (machine: Machine): string[] => [
    String(machine.config.guest?.cpus ?? DEFAULT_CPUS),
    machine.private_address,
    lastStart(machine),
    machine.version,
    ago(machine.created_at),
  ],
};

/** The memory that the machine is configured with, in MB. */
export function memoryMb({ config }: Machine): number {
  return config.guest?.memory_mb ?? DEFAULT_MEMORY_MB;
}

type Boot = NonNullable<Machine["last_boot"]>;

const BOOT_WORDS: Record<Boot["kind"], string> = { warm: "resumed warm", resume: "resumed", cold: "cold" };

/** How a machine came up: `resumed in 307 ms`. */
export function bootText({ kind, duration_ms: took }: Boot, word = BOOT_WORDS[kind]): string {
  return `${word} in ${Math.round(took)} ms`;
}

/** `resumed in 307 ms, 12 s ago` */
export function lastStart({ last_boot: boot }: Machine): string {
  if (boot === null) return "never";
  const word = boot.kind === "cold" ? `cold (${boot.reason.split(":")[0]})` : undefined;
  return `${bootText(boot, word)}, ${ago(boot.at)}`;
}

/** The column that says where machines are: in a cluster on which host, elsewhere in which region. */
export function placeOf(machines: readonly Machine[]): { title: string; cell(machine: Machine): string } {
  return machines.some(({ host }) => host !== undefined)
    ? { title: "HOST", cell: ({ host }) => host ?? "" }
    : { title: "REGION", cell: ({ region }) => region };
}
