/** `hibernaut cluster`: several hosts that act as one. `init`, `join` and `leave` work on the data directory of a stopped platform. */
import { readFileSync } from "node:fs";
import type { Cluster, ClusterHost } from "@hibernaut/client";
import { command, type Noun, type Option, type OptionValues } from "../command.ts";
import { agree, YES } from "../confirming.ts";
import { UsageError } from "../failure.ts";
import { separated } from "../option-values.ts";
import { outputTable, TABLE } from "../output-format.ts";
import { ago, count, lines } from "../terminal.ts";

const NAME = {
  flags: "--name <name>",
  description: "what this host is called (default: the computer's name)",
} as const;
const ETCD = {
  flags: "--etcd <url>",
  description: "a client URL of etcd; may repeat, or be separated by commas",
  repeats: true,
} as const satisfies Option;
const PEER = {
  flags: "--peer <address>",
  description:
    "where other hosts reach this one, as host:port or host (default: an address of this host, and HIBERNAUT_PEER_LISTEN's port)",
} as const satisfies Option;
const ETCD_FILES = [
  { flags: "--etcd-ca <file>", description: "what signed the certificates that your etcd has, PEM" },
  { flags: "--etcd-cert <file>", description: "the certificate that hosts show etcd, PEM" },
  { flags: "--etcd-key <file>", description: "its key, PEM" },
] as const satisfies readonly Option[];
const INSECURE = {
  flags: "--insecure-etcd",
  description: "allow an etcd at http:// that other computers reach, for a network of these hosts alone",
} as const satisfies Option;
const START = "Start the platform now, for example with `hibernaut serve`.";

const init = command({
  name: "init",
  summary: "Make a cluster, with this host as its first member",
  description:
    "The platform must be stopped. What the host has stays, and is shared: its apps, hostnames, tokens and secrets. The hosts agree through etcd, which you run: name each of its members with --etcd. For URLs that begin with https://, this makes certificates for etcd and shows how to start it, unless you name yours.",
  options: [NAME, ETCD, ...ETCD_FILES, INSECURE, PEER],
  examples: [
    "hibernaut cluster init --name a --etcd https://10.0.0.1:2379,https://10.0.0.2:2379,https://10.0.0.3:2379",
    "hibernaut cluster init --name a --etcd http://127.0.0.1:2379",
    "hibernaut cluster init --name a --etcd https://e1:2379,https://e2:2379,https://e3:2379 --etcd-ca ca.crt --etcd-cert host.crt --etcd-key host.key",
  ],
  async run(_context, _args, { name, etcd = [], insecureEtcd = false, peer, ...files }) {
    const endpoints = urls(etcd);
    if (endpoints.length === 0)
      throw new UsageError(
        "The hosts need an etcd to agree through. Name it with --etcd, for example --etcd https://10.0.0.5:2379.",
      );
    const tls = tlsOf(files);
    const { platform, settings } = await load();
    const directory = { etcd: endpoints, ...(tls && { tls }), ...(insecureEtcd && { insecure: true }) };
    const etcdCertificates = tls === undefined && endpoints.some((url) => url.startsWith("https:"));
    const made = await platform.initCluster({ settings, name, peer, directory, etcdCertificates });
    const text = `Made cluster ${made.clusterId}, with this host as ${made.host}. ${START} Then let others join with \`hibernaut cluster token\`.`;
    return { document: documentOf(made), text };
  },
});

const token = command({
  name: "token",
  summary: "Create a token with which one host joins",
  description: "The token is shown once, and works once. Give it to `hibernaut cluster join` on the other host.",
  options: [
    {
      flags: "--expires <time>",
      description: "how long it is valid, such as 30m (default: 1h)",
      ...{ minimum: 60, maximum: 604_800, unit: "life" },
    },
  ],
  examples: ["hibernaut cluster token", "hibernaut cluster token --expires 10m --json"],
  async run(context, _args, { expires }) {
    const client = await context.client();
    const made = await client.createJoinToken(expires === undefined ? {} : { expires_in: expires });
    return { document: made, text: made.token };
  },
});

const join = command({
  name: "join",
  summary: "Make this host a member of a cluster",
  description:
    "The platform must be stopped, and the host must have no apps. The token says where the cluster is and how to recognize it.",
  arguments: [{ usage: "<token>", description: "from `hibernaut cluster token` on a host of the cluster" }],
  options: [
    NAME,
    PEER,
    { ...ETCD, description: "where this host reaches etcd, if not where the others do; may repeat" },
    INSECURE,
  ],
  examples: ["hibernaut cluster join hibjoin_eyJwZWVyIjoi... --name b"],
  async run(_context, [text = ""], { name, peer, etcd = [], insecureEtcd }) {
    const { platform, version, settings } = await load();
    const endpoints = urls(etcd);
    const options = { name, peer, insecureEtcd, ...(endpoints.length > 0 && { etcd: endpoints }) };
    const done = await platform.joinCluster({ settings, token: text, version, ...options });
    const said = `This host is a member of cluster ${done.clusterId}, as ${done.host}. ${START}`;
    return { document: documentOf(done), text: said };
  },
});

const status = command({
  name: "status",
  summary: "Show the hosts of the cluster",
  options: TABLE,
  examples: [
    "hibernaut cluster status",
    "hibernaut cluster status --json | jq -r '.hosts[] | select(.state == \"away\").name'",
  ],
  async run(context, _args, options) {
    const cluster = await (await context.client()).getCluster();
    const head = ["NAME", "STATE", "MACHINES", "FREE MEMORY", "VERSION", "ADDRESS", "STARTED"];
    const table = outputTable([head, ...cluster.hosts.map((host) => rowOf(host, cluster))], options);
    const disputed = cluster.disputed.map(({ reason }) => reason);
    return {
      document: cluster,
      text: lines(...summaryOf(cluster), "", table, ...(disputed.length > 0 ? ["", ...disputed] : [])),
    };
  },
});

const leave = command({
  name: "leave",
  summary: "Take this host out of its cluster",
  description:
    "The platform must be stopped, and the host must have no machines: `hibernaut hosts drain` moves them away. The host keeps its copy of the cluster's apps, names, tokens and secrets.",
  options: [
    { flags: "--forget", description: "only forget the cluster here, for a host that was removed from it" },
    YES,
  ],
  examples: ["hibernaut cluster leave", "hibernaut cluster leave --forget --yes"],
  async run(_context, _args, { forget = false, yes = false }) {
    const { platform, settings } = await load();
    const what = forget ? "This host forgets its cluster." : "This host leaves its cluster.";
    await agree(`${what} It can come back only with a new token.`, { yes, what: "changed" });
    const left = await platform.leaveCluster({ settings, forget });
    const text = `Host ${left.host} is no longer part of cluster ${left.clusterId} here.`;
    return { document: documentOf(left), text };
  },
});

const remove = command({
  name: "remove",
  aliases: ["rm"],
  summary: "Remove a host that is gone for good",
  description: "The host must be away, and must own no machines. If it comes back, it is refused.",
  arguments: [{ usage: "<host>", description: "the host's name, from `cluster status`" }],
  examples: ["hibernaut cluster remove b"],
  async run(context, [host = ""]) {
    await (await context.client()).removeHost(host);
    return { document: { host, ok: true }, text: `Removed host ${host} from the cluster.` };
  },
});

const drop = command({
  name: "drop",
  summary: "Give up a disputed copy of a machine",
  description:
    "After a restore of etcd, two hosts may have a copy of a machine. The host that you talk to gives up the one that it keeps, with the volumes that the other host has as well, so that the machine continues with the other one. So can be given up what another machine has the name or address of. The files stay in the host's quarantine for a day.",
  arguments: [{ usage: "<id>", description: "the machine's whole id, from `cluster status`" }],
  options: [YES],
  examples: ["hibernaut cluster drop 1faf4a4c54e0b1"],
  async run(context, [id = ""], { yes = false }) {
    const client = await context.client();
    const { host, disputed } = await client.getCluster();
    const reason = disputed.find(({ machine_id: one }) => one === id)?.reason;
    const what = `Host ${host} gives up its copy of machine ${id}, with its memory and files, and with the volumes of which another host has a copy.`;
    await agree(reason === undefined ? what : `${reason}\n${what}`, { yes, what: "changed" });
    await client.dropDisputedMachine(id);
    return { document: { id, host, ok: true }, text: `Host ${host} gave up its copy of machine ${id}.` };
  },
});

const etcd = command({
  name: "etcd",
  summary: "Change where this host finds etcd, and its certificates",
  description:
    "The platform must be stopped. What you leave out stays as it is. --renew makes new certificates for the members of etcd and for all hosts, so that a host that was removed cannot use those that it has.",
  options: [
    ETCD,
    ...ETCD_FILES,
    { flags: "--renew", description: "make new certificates, for etcd's members and for all hosts" },
    INSECURE,
  ],
  examples: [
    "hibernaut cluster etcd --renew",
    "hibernaut cluster etcd --etcd-ca ca.crt --etcd-cert host.crt --etcd-key host.key",
  ],
  async run(_context, _args, { etcd: given = [], renew = false, insecureEtcd, ...files }) {
    const tls = tlsOf(files);
    const endpoints = urls(given);
    if (renew && tls !== undefined)
      throw new UsageError("--renew makes certificates: leave out --etcd-ca, --etcd-cert and --etcd-key.");
    if (!renew && tls === undefined && endpoints.length === 0 && insecureEtcd === undefined)
      throw new UsageError(
        "There is nothing to change. Name URLs or certificates of etcd, or make new ones with --renew.",
      );
    const { changeEtcd } = await import("@hibernaut/cluster/repairs");
    const { settings } = await load();
    const changed = { renew, tls, insecure: insecureEtcd, ...(endpoints.length > 0 && { etcd: endpoints }) };
    const { directory, start } = await changeEtcd({ settings, ...changed });
    const others =
      "Copy the directory of each member to its server and start it again, and on the other hosts, name the files of the directory `hosts` with --etcd-ca, --etcd-cert and --etcd-key.";
    return {
      document: { directory, ok: true },
      text: lines(`This host finds ${directory}.`, ...(start === undefined ? [] : [others, "", start])),
    };
  },
});

const sign = command({
  name: "sign",
  summary: "Vouch for what is in etcd without a signature",
  description:
    "For a cluster that was made by a version that did not sign its records, with all its platforms stopped. Hosts ignore a record of etcd that is not signed, because anybody may have written it. This shows the records, and signs them once you say that they are right: from then on, hosts believe them.",
  options: [YES],
  examples: ["hibernaut cluster sign"],
  async run(_context, _args, { yes = false }) {
    const { signCluster } = await import("@hibernaut/cluster/repairs");
    const { settings } = await load();
    const agreeTo = async (keys: readonly string[]) => {
      const warning = `${keys.join("\n")}\nAnyone who wrote these ${keys.length} records gets what they say.`;
      if (keys.length > 0) await agree(warning, { yes, what: "changed" });
    };
    const signed = await signCluster({ settings, agree: agreeTo });
    const text = signed.length === 0 ? "All records are signed." : `Signed ${count(signed.length, "record")}.`;
    return { document: { signed }, text };
  },
});

function summaryOf({ id, region, host, lease, directory, directory_age_s: age }: Cluster): string[] {
  const heard = age === 0 ? "connected" : `last heard of ${age} s ago`;
  const start = {
    live: "",
    grace: ", which has ended: this host starts only machines that it knows to be its own, and only for a while",
    lost: ", which has ended: this host starts no machines until etcd answers",
  }[lease];
  return [`Cluster ${id} in region ${region}, seen by host ${host}`, `${directory}: ${heard}; lease ${lease}${start}`];
}

function rowOf(host: ClusterHost, { host: here }: Cluster): string[] {
  const { name, state, machines, memory_mb: memory, version, peer, started_at: started, draining } = host;
  return [
    name === here ? `${name} *` : name,
    draining ? `${state}, draining` : state,
    String(machines),
    memory === null ? "-" : `${memory.free} of ${memory.total} MB`,
    version ?? "-",
    peer ?? "-",
    started === null ? "-" : ago(started),
  ];
}

function documentOf(done: Record<"clusterId" | "host" | "region" | "directory", string>) {
  const { clusterId, host, region, directory } = done;
  return { cluster_id: clusterId, host, region, directory };
}

function urls(given: readonly string[]): string[] {
  const all = separated(given).filter((each) => each !== "");
  for (const url of all)
    if (!/^https?:\/\/[^/]+\/?$/.test(url))
      throw new UsageError(`\`${url}\` is not a valid URL of etcd. Write http://host:port or https://host:port.`);
  if (new Set(all.map((url) => new URL(url).protocol)).size > 1)
    throw new UsageError("All URLs of etcd must begin alike: with http:// or with https://.");
  return all;
}

/** The certificates that were named. Undefined when there are none. */
function tlsOf({ etcdCa, etcdCert, etcdKey }: OptionValues<typeof ETCD_FILES>) {
  if ((etcdCert === undefined) !== (etcdKey === undefined))
    throw new UsageError("--etcd-cert and --etcd-key belong together: name both, or neither.");
  const given = etcdCa ?? etcdCert;
  return given === undefined ? undefined : { ca: read(etcdCa), cert: read(etcdCert), key: read(etcdKey) };
}

function read(file: string | undefined): string | undefined {
  if (file === undefined) return undefined;
  try {
    return readFileSync(file, "utf8");
  } catch (error) {
    throw new UsageError(`The file ${file} cannot be read: ${(error as Error).message}.`);
  }
}

async function load() {
  const [platform, { VERSION: version }, { readSettings }] = await Promise.all([
    import("@hibernaut/cluster/join"),
    import("@hibernaut/platform/version.ts"),
    import("@hibernaut/settings"),
  ]);
  return { platform, version, settings: readSettings(process.env) };
}

export const cluster: Noun = {
  name: "cluster",
  summary: "Join several hosts",
  commands: [init, token, join, status, leave, remove, drop, etcd, sign],
};
