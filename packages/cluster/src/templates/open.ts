/** All that a host does with the templates of its cluster, put together. */
import { abortable } from "@hibernaut/lib/async";
import type { TemplateTravel } from "@hibernaut/machines";
import type { Cluster } from "../cluster.ts";
import { type HostRecord, KEYS, type SharedTemplate } from "../keys.ts";
import { identityOf } from "../moves/choose.ts";
import type { Rate } from "../moves/rate.ts";
import type { Log } from "../ownership/retry.ts";
import type { PeerClient } from "../peer-client.ts";
import type { PeerRoute } from "../peer-server.ts";
import type { OpenTemplateClaims } from "./claims.ts";
import { endTemplate, templateKey } from "./records.ts";
import { TemplateSource } from "./source.ts";
import { TemplateTarget } from "./target.ts";

/** How often what came of templates is looked at, in milliseconds. It is kept for an hour. */
const TIDY_MS = 10 * 60_000;
/** How long a deletion waits for the other hosts that are up to delete theirs, in milliseconds: they hear of it at once. */
const DROPPED_MS = 2_000;

interface ClusterTemplatesOptions {
  cluster: Cluster;
  claims: OpenTemplateClaims;
  travel: TemplateTravel;
  send: PeerClient["send"];
  rate: Rate;
  log: Log;
}

/** The templates of all hosts. */
export interface ClusterTemplates {
  /**
   * The template that `word` refers to on any host, as far as this one has heard. Undefined for one that no host has told of.
   * Throws `invalid_argument` when it may be several.
   */
  find(app: string, word: string): SharedTemplate | undefined;
  /** The names of the hosts that have it, whether they are up or not, sorted. */
  hostsOf(template: Pick<SharedTemplate, "app" | "id">): string[];
  /** Why a host that has not got it could not use it, as far as it has published: a stable word, a colon and what differs. */
  refusalOn(template: SharedTemplate, host: Pick<HostRecord, "hypervisor">): string | undefined;
  /** Resolves once this host has it. Rejects as {@link TemplateTarget.bring} does. */
  bring(template: SharedTemplate, signal: AbortSignal): Promise<void>;
  /**
   * Deletes it on all hosts. Resolves with the hosts that have it still, because they are away: each deletes it when it is
   * back. Rejects with `unavailable` when the directory does not answer.
   */
  delete(template: Pick<SharedTemplate, "app" | "id">): Promise<string[]>;
}

export interface OpenedTemplates extends ClusterTemplates {
  readonly target: Pick<TemplateTarget, "tidy">;
  /** Answers requests of other hosts about templates. */
  readonly route: PeerRoute;
  /** Begins to follow what other hosts do. Call it once machines are recovered. */
  start(): void;
  close(): void;
}

export function openClusterTemplates(options: ClusterTemplatesOptions): OpenedTemplates {
  const { cluster, claims, travel, send, rate, log } = options;
  const { known, busy, left } = claims;
  const closing = new AbortController();
  const source = new TemplateSource({ travel, rate, log });
  const target = new TemplateTarget({ cluster, travel, send, busy, left, closing: closing.signal });
  const running = new DisposableStack();
  const isKnown = (id: string) => known.all().some((each) => each.id === id && each.ended !== true);
  const tidy = () =>
    // While the directory was not heard of since the start, nothing says that a template is gone.
    void target
      .tidy((id) => cluster.view.revision === 0 || isKnown(id))
      .catch((err: unknown) => log.warn({ err }, "what came of templates of other hosts was not cleaned up"));
  return {
    target,
    find: (app, word) => known.find(app, word),
    hostsOf: (which) => known.get(which)?.hosts.toSorted() ?? [],
    refusalOn({ taken }, host) {
      const identity = identityOf(host);
      return identity && travel.refusalOn(taken, identity);
    },
    bring: (template, signal) => target.bring(template, signal),
    async delete(which) {
      await endTemplate(which, cluster.directory);
      await travel.drop(which.id);
      return dropped(which, options);
    },
    route: (request, response) => source.route(request, response),
    start() {
      claims.follow(travel);
      tidy();
      const timer = setInterval(tidy, TIDY_MS).unref();
      running.defer(() => clearInterval(timer));
    },
    close() {
      running.dispose();
      closing.abort(new Error("the platform is shutting down"));
      claims.close();
    },
  };
}

/** Waits until the hosts that are up have deleted what they had. Resolves with those that have it still. */
async function dropped(
  which: Pick<SharedTemplate, "app" | "id">,
  { cluster }: ClusterTemplatesOptions,
): Promise<string[]> {
  const { view, host: own } = cluster;
  const left = () => {
    const template = view.value(templateKey(which)) as SharedTemplate | undefined;
    return (template?.hosts ?? []).filter((host) => host !== own && view.host(host) !== undefined);
  };
  const done = Promise.withResolvers<void>();
  const look = () => {
    if (left().every((host) => view.host(host)?.up === undefined)) done.resolve();
  };
  const unsubscribe = view.subscribe(KEYS.templates, look);
  look();
  await abortable(done.promise, AbortSignal.timeout(DROPPED_MS)).catch(() => {}); // the reply says which are left
  unsubscribe();
  return left().toSorted();
}
