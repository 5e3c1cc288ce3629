/** Machines that are made from the memory of another one: forks, and those from a template. Pure. */
import type { ForkRequest, Machine, Template } from "@hibernaut/client/browser";
import { bytes, count } from "../format.ts";

const BYTES_IN_MB = 1024 * 1024;

/** What a form says about new machines, for the API. */
export function birthOf(form: Pick<FormData, "get">): Pick<ForkRequest, "name"> & Required<Launch> {
  return {
    ...nameIn(form),
    skip_launch: form.get("asleep") !== null,
    skip_service_registration: form.get("cordoned") !== null,
  };
}

type Launch = Pick<ForkRequest, "skip_launch" | "skip_service_registration">;

/** The name in a form. The platform generates one if there is none. */
export function nameIn(form: Pick<FormData, "get">): { name?: string } {
  const name = String(form.get("name") ?? "").trim();
  return name === "" ? {} : { name };
}

/** The machines that were made from a template and are still there, by name. */
export function childrenOf(machines: readonly Machine[], template: string): Machine[] {
  return machines
    .filter(({ origin }) => origin?.template === template)
    .toSorted((a, b) => a.name.localeCompare(b.name, undefined, { numeric: true }));
}

/** How full the pool of a template is. Undefined if it has none. */
export function poolSentence({ size, ready, warm }: Template["pool"]): string | undefined {
  if (size === 0) return undefined;
  return `Pool: ${ready} of ${size} ready${warm > 0 ? `, ${warm} warm` : ""}`;
}

/** What a copy of its state means for the machine itself. */
export function pauseSentence({ name, state }: Pick<Machine, "name" | "state">): string {
  return state === "suspended"
    ? `${name} sleeps on.`
    : `${name} is paused while its memory and its disk are copied, and then continues. Its requests wait meanwhile.`;
}

/** What forks take of the host's disk, of which each has that much memory. */
export function forksDiskSentence(number: number, memoryMb: number): string {
  const memory = bytes(number * memoryMb * BYTES_IN_MB);
  return number === 1
    ? `A fork takes ${memory} of the host's disk, the size of its memory, and a copy of what ${WRITTEN}.`
    : `${count(number, "fork")} take ${memory} of the host's disk, the size of their memory, and each a copy of what ${WRITTEN}.`;
}

/** What a template takes of the host's disk, of a machine with that much memory. */
export function templateDiskSentence(memoryMb: number): string {
  return `It takes up to ${bytes(memoryMb * BYTES_IN_MB)} of the host's disk, the size of the machine's memory, and a copy of what ${WRITTEN}.`;
}

const WRITTEN = "the machine wrote. Where the file system can share blocks, it is far less";
