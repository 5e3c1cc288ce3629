/** The end of a guest that cannot continue: its process is ended, and why is found out first. */
import type { VmmRef } from "../contract.ts";
import { brokenBy, readTail, tellingLine } from "./failure.ts";
import { killProcess } from "./process.ts";
import type { Qmp } from "./qmp.ts";

/** What QEMU and the guest's kernel print, and how much of that, in bytes, is from before this QEMU. */
interface Console {
  console: string;
  consoleBefore?: number;
}

/** Why QEMU ends by itself (ShutdownCause), where that is a crash of the guest. `-no-reboot` turns a reset into an end. */
const CRASHES: Readonly<Record<string, string>> = {
  "guest-reset": "the guest's kernel has crashed, or rebooted",
  "guest-panic": "the guest's kernel has crashed",
};

/** Watches one guest, which may be stopped for good, or have crashed, already. */
export class GuestEnd {
  #failure: string | undefined;
  #work: Promise<void> | undefined;

  constructor(ref: VmmRef, qmp: Qmp, console: Console) {
    const end = (what: string | undefined) => {
      if (what !== undefined) this.#work ??= this.#end(what, ref, console);
    };
    const look = () =>
      void qmp
        .execute<{ status: string }>("query-status")
        .then(({ status }) => end(brokenBy(status)))
        .catch(() => {}); // QEMU has ended: others notice that
    look();
    qmp.subscribe(({ event, data }) => {
      if (event === "STOP" || event === "GUEST_PANICKED") look();
      if (event === "SHUTDOWN") end(CRASHES[String(data["reason"])]);
    });
  }

  /** Why the guest could not continue. Undefined when it ended in another way, or has not ended. */
  get failure(): string | undefined {
    return this.#failure;
  }

  /** Resolves when as much as there is to know is known. */
  async settled(): Promise<void> {
    await this.#work;
  }

  async #end(what: string, ref: VmmRef, { console, consoleBefore }: Console): Promise<void> {
    this.#failure = what;
    const line = tellingLine(await readTail(console, consoleBefore));
    if (line !== undefined) this.#failure = `${what}: ${line}`;
    // One that the kernel does not end in time stays alive, and so does its machine.
    await killProcess(ref).catch(() => {});
  }
}
