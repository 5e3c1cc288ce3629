/** Names that only the platform knows, for completion. */
import type { HibernautClient } from "@hibernaut/client";
import type { Named } from "../command.ts";

/** Someone waits at a prompt: a platform that takes longer to answer has nothing to offer. */
export const NAMES_TIMEOUT_MS = 1500;

/** A name, and what tells it from the others. */
type Name = [word: string, description: string];

type List = (client: HibernautClient, app: () => string, signal: AbortSignal) => Promise<Name[]>;

/** How the names of each kind are listed. Files are up to the shell. */
export const LISTS: Record<Exclude<Named, "file">, List> = {
  app: async (client, _app, signal) =>
    (await client.listApps({ signal })).map(({ name, machine_count: machines }) => [name, `${machines} machines`]),
  machine: async (client, app, signal) =>
    (await client.listMachines(app(), { signal })).map(({ id, name, state }) => [name || id, state]),
  volume: async (client, app, signal) =>
    (await client.listVolumes(app(), { signal })).map(({ id, name, size_gb: size }) => [id, `${name}, ${size} GB`]),
  hostname: async (client, app, signal) => (await client.listHostnames(app(), { signal })).map((name) => [name, ""]),
  certificate: async (client, app, signal) =>
    (await client.listCertificates(app(), { signal })).map(({ hostname, status }) => [hostname, status]),
  secret: async (client, app, signal) => (await client.listSecrets(app(), { signal })).map(({ name }) => [name, ""]),
  token: async (client, _app, signal) => (await client.listTokens({ signal })).map(({ id, name }) => [id, name]),
  webhook: async (client, _app, signal) => (await client.listWebhooks({ signal })).map(({ id, url }) => [id, url]),
  registry: async (client, _app, signal) =>
    (await client.listRegistryLogins({ signal })).map(({ host, username }) => [host, username]),
};
