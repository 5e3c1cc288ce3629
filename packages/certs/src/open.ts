/** Puts the parts together that get certificates. */
import { messageOf } from "@hibernaut/lib/text";
import type { Settings } from "@hibernaut/settings";
import type { CertificateStore } from "@hibernaut/store";
import { AccountFile } from "./account.ts";
import { AcmeAuthority } from "./acme.ts";
import { ChallengeBoard } from "./challenges.ts";
import { type CertificateAuthority, certificatesFolder, type Proof } from "./contract.ts";
import { addRecord } from "./dns-hook.ts";
import { type ExamineOptions, examine } from "./examine.ts";
import { CertificateFiles } from "./files.ts";
import { CertificateManager, type ManagerOptions } from "./manager.ts";

interface OpenCertificatesOptions extends Pick<ManagerOptions, "namesOf" | "requireRoom" | "log" | "random"> {
  settings: Pick<
    Settings,
    | "dataDir"
    | "acmeDirectory"
    | "acmeEmail"
    | "acmeChallenge"
    | "acmeCaFile"
    | "acmeDnsHook"
    | "acmeDnsHookTimeoutMs"
    | "publicAddresses"
    | "proxy"
    | "proxyTlsListen"
  >;
  store: CertificateStore;
  /** The wall clock. By default, the host's. */
  clock?(): Date;
  /** For tests: in the place of the one that the settings name. */
  authority?: CertificateAuthority;
  /** For tests: where to look what a name lacks. */
  looking?: Pick<ExamineOptions, "dnsServers" | "httpPort" | "tlsPort">;
  /** For tests: in the place of looking. */
  examine?: ManagerOptions["examine"];
}

interface OpenCertificates {
  manager: CertificateManager;
  /** For the proxies. */
  challenges: ChallengeBoard;
}

/** The authorities with a name. Let's Encrypt's staging server has generous limits, and issues what no browser accepts. */
const AUTHORITIES: Readonly<Record<string, string>> = {
  letsencrypt: "https://acme-v02.api.letsencrypt.org/directory",
  "letsencrypt-staging": "https://acme-staging-v02.api.letsencrypt.org/directory",
};
/** What an order may take in addition to the DNS hook, in milliseconds: twice what an authority may take to be ready. */
const ORDER_MS = 300_000;

/** Reads the stored certificates. Rejects with `invalid_argument` when the authority's root certificate cannot be read. */
export async function openCertificates(options: OpenCertificatesOptions): Promise<OpenCertificates> {
  const { settings, store, namesOf, log, clock = () => new Date(), looking = {} } = options;
  const folder = certificatesFolder(settings.dataDir);
  const stored = new CertificateFiles(folder);
  await stored.load((hostname, error) =>
    log.warn({ hostname, reason: messageOf(error) }, "a stored certificate cannot be used, and is ordered again"),
  );
  const board = new ChallengeBoard();
  const directory = AUTHORITIES[settings.acmeDirectory] ?? settings.acmeDirectory;
  const authority =
    options.authority ??
    new AcmeAuthority({
      directory,
      email: settings.acmeEmail,
      caFile: settings.acmeCaFile,
      account: new AccountFile(folder, directory),
    });
  const { acmeDnsHook: program, acmeDnsHookTimeoutMs: timeoutMs } = settings;
  const hook = program === undefined ? undefined : { program, timeoutMs, onTrouble };
  function onTrouble(record: string, reason: string): void {
    log.warn({ record, reason }, "the DNS hook could not remove a record");
  }
  const { acmeChallenge: challenge } = settings;
  const examining = {
    ...{ authority, board, challenge, addresses: settings.publicAddresses, hook: program },
    tls: settings.proxy === "inside" ? settings.proxyTlsListen !== undefined : undefined,
    ...looking,
  };
  const manager = new CertificateManager({
    ...{ store, stored, authority, namesOf, clock, log },
    ...(options.requireRoom && { requireRoom: options.requireRoom }),
    ...(options.random && { random: options.random }),
    challenge,
    hasDnsHook: hook !== undefined,
    orderTimeoutMs: ORDER_MS + timeoutMs,
    examine: options.examine ?? ((name, signal) => examine(examining, name, signal)),
    async prove(proof: Proof, signal) {
      if (proof.kind === "http-01") return board.publish(proof.hostname, proof.token, proof.value);
      if (proof.kind === "tls-alpn-01") return board.show(proof.hostname, proof.certificate);
      if (hook === undefined) throw new Error("no DNS hook is configured any more; set HIBERNAUT_ACME_DNS_HOOK");
      return addRecord(hook, proof, signal);
    },
  });
  return { manager, challenges: board };
}
