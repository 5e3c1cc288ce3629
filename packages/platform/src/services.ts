/** What serves apps besides their machines: certificates, images that are kept, events, backups and webhooks. */
import { openCertificates } from "@hibernaut/certs/open";
import { tellChecks } from "@hibernaut/checks";
import { EventStream, openWebhooks } from "@hibernaut/events";
import { Library } from "@hibernaut/images/open";
import { imagesInUse } from "@hibernaut/machines/in-use";
import { AppAddresses } from "@hibernaut/proxy";
import { openBackups } from "./backups.ts";
import type { Machines } from "./machines.ts";
import { openShared } from "./member.ts";
import { VERSION } from "./version.ts";

export type Services = Awaited<ReturnType<typeof openServices>>;

/** Opens them. Nothing is started yet. */
export async function openServices(machines: Machines) {
  const { settings, log, open, store, keyFile, vault, images, others, cluster } = machines;
  const { resources, volumes, quotas, clustered, checkResults } = machines;
  const addresses = new AppAddresses(resources.hostnames, settings.proxySuffixes);
  const { manager: certificates, challenges } = await openCertificates({
    settings,
    store: store.certificates,
    namesOf: (app) => addresses.namesOf(app),
    requireRoom: (app) => quotas.requireCertificate(app),
    log,
  });
  open.defer(() => certificates.close());
  const library = new Library({
    images,
    inUse: () => imagesInUse(store),
    keepMs: settings.imageKeepH * 3_600_000,
    onFault: (err) => log.error({ err }, "images that no machine needs could not be collected"),
  });

  const stream = new EventStream(store.outbox);
  open.defer(() => stream.close());
  tellChecks(checkResults, store, {
    onFault: (err) => log.error({ err }, "a change of a check could not be stored for the stream of events"),
  });

  const templates = clustered?.templates;
  const shared =
    cluster && templates && (await openShared({ cluster, store, resources, quotas, images, templates, keyFile, log }));
  if (shared !== undefined) others.fetchImage = shared.fetchImage;
  open.defer(() => shared?.close());
  const {
    recover: recoverBackups,
    start: startBackups,
    close: closeBackups,
    ...kinds
  } = openBackups({
    ...{ settings, store, keyFile, resources, volumes, images, shared: shared?.api.shared, log },
  });
  open.defer(closeBackups);
  const webhooks = openWebhooks({ settings, store, stream, vault, version: VERSION, log });
  open.defer(() => webhooks.close());
  return {
    ...machines,
    ...{ addresses, certificates, challenges, library, stream, shared, webhooks },
    ...{ recoverBackups, startBackups, kinds },
  };
}
