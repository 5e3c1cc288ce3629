/** Puts together what a host does with the records that all hosts of its cluster share. */
import type { MachineState } from "@hibernaut/domain/machine";
import type { Logger, Quotas, Resources, SecretsEffect } from "@hibernaut/machines";
import type { Secrets } from "@hibernaut/secrets";
import type { SecretStore, Store } from "@hibernaut/store";
import type { Cluster } from "../cluster.ts";
import { KEYS } from "../keys.ts";
import { Agreed } from "./agreed.ts";
import { AgreedCopy } from "./copy.ts";
import { deleteApp } from "./delete-app.ts";
import { draftStore } from "./draft-store.ts";
import { previewEnds } from "./preview-ends.ts";
import { Projection } from "./projection.ts";
import { type AgreedRelease, agreedToken, releaseKey } from "./records.ts";
import type { SharedParts, SharedRecords, Write } from "./shared.ts";

/** How often this host tries again to store what it could not. */
const RETRY_MS = 5000;

export interface OpenAgreedOptions {
  cluster: Cluster;
  store: Store;
  resources: Pick<Resources, "apps" | "previews" | "hostnames" | "secrets" | "releases">;
  quotas: Quotas;
  /** Opens the secrets of a store, with this host's key, which all hosts have. */
  openSecrets(store: SecretStore): Secrets;
  log: Logger;
}

/** Opens the records. Call `start` once the machines are known. */
export function openAgreed({ cluster, store, resources, quotas, openSecrets, log }: OpenAgreedOptions): SharedRecords {
  const { view, host } = cluster;
  const { apps, previews, hostnames, secrets, releases } = resources;
  const projection = new Projection({
    store,
    host,
    changeSecrets: (app, change) => secrets.adopt(app, change),
    appsDeleted: () => apps.deleted(),
    hostnamesChanged: () => hostnames.changed(),
    onTrouble: (message, fields) => log.warn(fields, message),
  });
  const copy = new AgreedCopy({ view, apply: projection.apply });
  const agreed = new Agreed({ cluster, copy });
  const running = new DisposableStack();
  const publish = (id: string) =>
    agreed.change((draft) => {
      const token = store.tokens.get(id);
      if (token !== undefined && draft.get(KEYS.tokens + id) === undefined)
        draft.put(KEYS.tokens + id, agreedToken(token));
    });
  const retry = () => {
    projection.retry();
    for (const id of projection.unpublished)
      publish(id).catch((err: unknown) => log.warn({ err, token: id }, "the other hosts do not know a token yet"));
  };

  /** A host that is away reports nothing: any other may then say that its releases are abandoned. */
  const isReportedHere = (app: string, version: number) => {
    const from = reporterOf(app, version);
    return from === undefined || from === host || view.host(from)?.up === undefined;
  };
  const reporterOf = (app: string, version: number) =>
    (copy.get(releaseKey(app, version)) as AgreedRelease | undefined)?.host;

  const write: Write = (work) =>
    agreed.change((draft) => {
      const shared = draftStore(draft, { own: store, host });
      const values = openSecrets(shared.secrets);
      const parts: SharedParts = {
        apps: apps.over(shared.apps),
        previews: previews.over({ apps: shared.apps, quotas: quotas.over(shared.apps) }),
        hostnames: hostnames.over(shared),
        secrets: everywhere(secrets.over({ store: shared, secrets: values }), values, cluster),
        releases: releases.over({ store: shared, isReportedHere }),
        quotas: quotas.over(shared.apps),
        tokens: shared.tokens,
      };
      return work(parts);
    });
  const deleteOne: SharedRecords["deleteApp"] = (app, empty, createdAt) =>
    deleteApp(app, { agreed, view, directory: cluster.directory, empty, createdAt });

  return {
    host,
    catchUp: () => agreed.catchUp(),
    reporterOf,
    write,
    deleteApp: deleteOne,
    previewEnds: previewEnds({
      cluster,
      write,
      deleteApp: deleteOne,
      empty: (app) => apps.empty(app, { force: true }),
    }),
    start() {
      running.defer(copy.start());
      const timer = setInterval(retry, RETRY_MS).unref();
      running.defer(() => clearInterval(timer));
    },
    publishToken(id) {
      if (copy.get(KEYS.tokens + id) !== undefined) return;
      projection.keepToken(id);
      retry();
    },
    close: () => running.dispose(),
  };
}

/** Adds to what a change of secrets does here what it does to the machines of other hosts. */
function everywhere(
  secrets: SharedParts["secrets"],
  values: Pick<Secrets, "changed">,
  { view, host }: Cluster,
): SharedParts["secrets"] {
  const withOthers = (app: string, { discarded, pending }: SecretsEffect): SecretsEffect => {
    const others = view
      .machines(app)
      .filter((machine) => machine.host !== host)
      .map(({ id }) => ({ id, state: view.state(id)?.state }));
    const those = (...states: MachineState[]) =>
      others.filter(({ state }) => state !== undefined && states.includes(state)).map(({ id }) => id);
    return {
      discarded: [...discarded, ...those("suspended")],
      pending: [...pending, ...those("starting", "running", "suspending")],
    };
  };
  return {
    set(app, wanted, options) {
      // Before the draft has them.
      const isSame = values.changed(app, wanted).length === 0;
      const here = secrets.set(app, wanted, options);
      return isSame ? here : withOthers(app, here);
    },
    copy: (from, to) => withOthers(to, secrets.copy(from, to)),
    unset: (app, name, options) => withOthers(app, secrets.unset(app, name, options)),
  };
}
