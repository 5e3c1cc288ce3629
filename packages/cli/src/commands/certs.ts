/** `hibernaut certs` */
import { AGREE_TERMS, addAndWait, certificateText } from "../certificates.ts";
import { command, type Noun } from "../command.ts";
import { CliError } from "../failure.ts";
import { listCommand } from "../listing.ts";
import { localTime } from "../local-time.ts";
import { lines, style } from "../terminal.ts";
import { WAITING } from "../waiting.ts";

const HOSTNAME = [
  { usage: "<hostname>", description: "a hostname of the app, or *.example.com for all below it", names: "hostname" },
] as const;

const add = command({
  name: "add",
  summary: "Get a certificate for a hostname, and renew it from then on",
  description:
    "The authority checks that the hostname leads to this platform: port 80 must lead to the proxy. `certs check` says what is missing. Adding a certificate again repeats a failed attempt at once.",
  arguments: HOSTNAME,
  options: [AGREE_TERMS, ...WAITING],
  ofApp: true,
  examples: [
    "hibernaut certs add www.example.com --app shop",
    "hibernaut certs add www.example.com --app shop --agree-terms",
  ],
  async run(context, [hostname = ""], options) {
    const certificate = await addAndWait(context, hostname, options);
    return { document: certificate, text: certificateText(certificate) };
  },
});

const list = listCommand({
  summary: "List the certificates of an app",
  ofApp: true,
  examples: ["hibernaut certs list --app shop", "hibernaut certs list -o wide --app shop"],
  fetch: (client, { app }) => client.listCertificates(app),
  show: ({ app }) => ({
    head: ["HOSTNAME", "STATUS", "EXPIRES", "RENEWAL"],
    row: ({ hostname, status, not_after: until, renew_at: renewal, failure }) => [
      hostname,
      status,
      until === null ? "-" : localTime(until),
      renewalText(renewal, failure?.attempts ?? 0),
    ],
    wide: {
      head: ["ISSUER", "CHALLENGE", "FAILURE"],
      row: ({ issuer, challenge, failure }) => [issuer ?? "-", challenge, failure?.reason ?? "-"],
    },
    spare: ["RENEWAL"],
    id: ({ hostname }) => hostname,
    empty: `App ${app} has no certificates.`,
  }),
});

function renewalText(renewal: string | null, failures: number): string {
  if (failures > 0) return failures === 1 ? "failed once" : `failed ${failures} times`;
  return renewal === null ? "-" : localTime(renewal);
}

const MARKS = { ok: "green", missing: "red", unknown: "yellow" } as const;

const check = command({
  name: "check",
  summary: "Check what a hostname needs for a certificate",
  description:
    "Looks in DNS and at port 80, as the authority will, and prints the DNS records to add. Exits with code 1 if something is missing.",
  arguments: HOSTNAME,
  ofApp: true,
  examples: ["hibernaut certs check www.example.com --app shop"],
  async run(context, [hostname = ""]) {
    const client = await context.client();
    const findings = await context.progress(`Checking ${hostname}`, client.checkCertificate(context.app, hostname));
    const text = findings.map(({ status, what, found, records }) =>
      lines(
        `${style(MARKS[status], status.padEnd(7), process.stdout)}  ${what.padEnd(9)}  ${found}`,
        ...records.map((record) => `    ${record}`),
      ),
    );
    const missing = findings.filter(({ status }) => status === "missing");
    const message = `${hostname} lacks what a certificate needs: ${missing.map(({ what }) => what).join(", ")}. The lines above say how to repair it.`;
    const failures = missing.length === 0 ? [] : [new CliError("failed_precondition", message)];
    return { document: findings, text: text.join("\n"), failures };
  },
});

const remove = command({
  name: "remove",
  aliases: ["rm"],
  summary: "Remove a certificate with its key",
  description:
    "It is no longer renewed, and the proxy shows it no more. The hostname stays. With --revoke, the authority also declares it invalid: do so when someone may have its key.",
  arguments: [{ usage: "<hostname>", description: "as `certs list` shows it", names: "certificate" }],
  options: [{ flags: "--revoke", description: "have the authority declare it invalid first" }],
  ofApp: true,
  examples: [
    "hibernaut certs remove www.example.com --app shop",
    "hibernaut certs remove www.example.com --app shop --revoke",
  ],
  async run(context, [hostname = ""], { revoke = false }) {
    await (await context.client()).removeCertificate(context.app, hostname, { revoke });
    const done = revoke ? "Revoked and removed" : "Removed";
    return { document: { hostname, ok: true }, text: `${done} the certificate for ${hostname}.` };
  },
});

export const certs: Noun = {
  name: "certs",
  aliases: ["certificates"],
  summary: "Manage HTTPS certificates that renew themselves",
  commands: [add, list, check, remove],
};
