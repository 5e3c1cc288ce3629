/**
 * Certificates for an etcd of a cluster's own: an authority that signs nothing else, one certificate for each member, and
 * one for all hosts, which gets its holder everything that is in etcd.
 */
import { mkdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { makeKey, type Pair, sign } from "@hibernaut/lib/certificates";
import { replaceFile } from "@hibernaut/lib/durable";
import { makeClusterAuthority } from "../identity.ts";
import type { EtcdTls } from "./gateway.ts";
import { argumentsOf, MEMBER_FILES, membersOf } from "./members.ts";

/** In the data directory of the host that made them. */
export const ETCD_FOLDER = "etcd";
/** Nothing renews them: an etcd whose certificates have expired would take the whole cluster along. */
const DAYS = 10 * 365;
const CA_FILE = "ca.crt";
/** The directory of what all hosts show. Those that join get it from the others. */
const HOSTS = "hosts";

/** Makes an authority, and a certificate for each member behind the client URLs. Resolves with what hosts need. */
export async function makeEtcdCertificates(
  dataDir: string,
  { clusterId, urls }: { clusterId: string; urls: readonly string[] },
): Promise<Required<EtcdTls>> {
  const folder = join(dataDir, ETCD_FOLDER);
  const authority = await makeClusterAuthority(clusterId, " etcd");
  const ca = authority.certificate;
  await save(folder, { [CA_FILE]: ca, "ca.key": authority.key });
  for (const { name, host } of membersOf(urls)) {
    const own = await signed(authority, name, [host]);
    const { certificate, key } = MEMBER_FILES;
    await save(join(folder, name), { [MEMBER_FILES.ca]: ca, [certificate]: own.certificate, [key]: own.key });
  }
  // Without names, because etcd would check that a client comes from one of them.
  const { certificate: cert, key } = await signed(authority, HOSTS, []);
  await save(join(folder, HOSTS), { [CA_FILE]: ca, "host.crt": cert, "host.key": key });
  return { ca, cert, key };
}

/** Whether the certificates of this place were made on this host. */
export async function areOurs(dataDir: string, tls: EtcdTls | undefined): Promise<boolean> {
  const file = join(dataDir, ETCD_FOLDER, CA_FILE);
  return tls?.ca !== undefined && (await readFile(file, "utf8").catch(() => "")) === tls.ca;
}

/** What starts each member, for people: one command for each. */
export function startText(dataDir: string, urls: readonly string[]): string {
  const members = membersOf(urls);
  const lines = members.map((member) => {
    const folder = join(dataDir, ETCD_FOLDER, member.name);
    return `On ${member.host}, with ${folder}:\n\netcd ${argumentsOf(member, members, folder).join(" \\\n  ")}`;
  });
  return lines.join("\n\n");
}

async function signed(authority: Pair, name: string, names: readonly string[]): Promise<Pair> {
  const { key, publicKey } = makeKey();
  return { certificate: await sign(authority, { name, names, publicKey, days: DAYS }), key };
}

async function save(folder: string, files: Record<string, string>): Promise<void> {
  await mkdir(folder, { recursive: true, mode: 0o700 });
  for (const [name, text] of Object.entries(files)) await replaceFile(join(folder, name), text, { mode: 0o600 });
}
