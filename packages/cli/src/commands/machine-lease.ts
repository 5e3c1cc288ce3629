/** `hibernaut machine lease`: keep other clients from changing a machine. */
import type { Lease } from "@hibernaut/client";
import { type Command, command, type Noun } from "../command.ts";
import { localTime } from "../local-time.ts";
import { given } from "../option-values.ts";
import { fields } from "../terminal.ts";
import { MACHINE, machineOf } from "../which-machine.ts";

const take = command({
  name: "take",
  summary: "Keep other clients from changing a machine for a while",
  description:
    "Prints the nonce of the lease. Commands that change the machine need it in HIBERNAUT_LEASE_NONCE until the lease ends, and so does this one, to let it last longer.",
  arguments: [MACHINE],
  options: [
    {
      flags: "--ttl <time>",
      description: "how long, from now: seconds, or a unit as in 5m (default: 60)",
      minimum: 1,
      maximum: 86_400,
      unit: "seconds",
    },
    { flags: "--description <text>", description: "what it is for, for others who want to change the machine" },
  ],
  ofApp: true,
  examples: [
    "hibernaut machine lease take 3f9c01ab22de41 --ttl 5m --description deploy --app shop",
    "export HIBERNAUT_LEASE_NONCE=$(hibernaut machine lease take web-1 --json | jq -r .nonce)",
  ],
  async run(context, [word], { ttl, description }) {
    const client = await context.client();
    const { id } = await machineOf(context, word);
    const lease = await client.takeLease(context.app, id, given({ ttl, description }));
    const text = `Nobody else changes machine ${id} until ${localTime(lease.expires_at)}. For your own commands: export HIBERNAUT_LEASE_NONCE=${lease.nonce}`;
    return { document: { machine_id: id, ...lease }, text };
  },
});

const show = command({
  name: "show",
  summary: "Show who keeps others from changing a machine",
  arguments: [MACHINE],
  ofApp: true,
  examples: ["hibernaut machine lease show 3f9c01ab22de41 --app shop"],
  async run(context, [word]) {
    const client = await context.client();
    const { id } = await machineOf(context, word);
    const lease = await client.getLease(context.app, id);
    return { document: { machine_id: id, ...lease }, text: leaseText(id, lease) };
  },
});

const release = command({
  name: "release",
  summary: "Let others change a machine again",
  description: "Needs the nonce of the lease in HIBERNAUT_LEASE_NONCE.",
  arguments: [MACHINE],
  ofApp: true,
  examples: ["hibernaut machine lease release 3f9c01ab22de41 --app shop"],
  async run(context, [word]) {
    const client = await context.client();
    const { id } = await machineOf(context, word);
    await client.releaseLease(context.app, id);
    return { document: { machine_id: id }, text: `Others may change machine ${id} again.` };
  },
});

const clear = command({
  name: "clear",
  summary: "End the lease of a client that is gone",
  description: "Without its nonce. If its client is still at work, others may change the machine in between.",
  arguments: [MACHINE],
  ofApp: true,
  examples: ["hibernaut machine lease clear 3f9c01ab22de41 --app shop"],
  async run(context, [word]) {
    const client = await context.client();
    const { id } = await machineOf(context, word);
    const { owner } = await client.getLease(context.app, id);
    await client.clearLease(context.app, id);
    return { document: { machine_id: id, owner }, text: `Ended the lease of token ${owner} on machine ${id}.` };
  },
});

function leaseText(id: string, { owner, description, expires_at: end, version }: Lease): string {
  return fields([
    ["machine", id],
    ["token", owner],
    ["for", description === "" ? undefined : description],
    ["until", localTime(end)],
    ["version", version],
  ]);
}

export const lease: Noun = {
  name: "lease",
  aliases: ["leases"],
  summary: "Keep other clients from changing a machine",
  commands: [take, show, release, clear] as readonly Command[],
};
