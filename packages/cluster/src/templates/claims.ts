/** Which templates this host has, as all hosts of the cluster know it: told when they are made, and kept right afterwards. */
import { background } from "@hibernaut/lib/background";
import type { MadeTemplate, TemplateClaims, TemplateTravel } from "@hibernaut/machines";
import type { Cluster } from "../cluster.ts";
import { decides } from "../first-host.ts";
import { KEYS, type SharedTemplate } from "../keys.ts";
import { type Log, untilDone } from "../ownership/retry.ts";
import { bytesOf, digestOf } from "./contents.ts";
import { KnownTemplates } from "./known.ts";
import { LostTemplates } from "./lost.ts";
import { claimTemplate, endTemplate, type IfTaken, leaveTemplate, requireFreeName } from "./records.ts";
import { keptContents } from "./source.ts";

type Which = Pick<SharedTemplate, "app" | "id">;

export interface OpenTemplateClaims extends TemplateClaims {
  readonly known: KnownTemplates;
  /** A template is about to be stored here. Returns how to end that. */
  busy(id: string): () => void;
  /**
   * From now on, gives up templates that were ended on any host, and keeps what the directory says of this host's right. Call
   * it once machines are recovered.
   */
  follow(travel: TemplateTravel): void;
  close(): void;
}

export function openTemplateClaims(cluster: Cluster, log: Log): OpenTemplateClaims {
  const { host, directory, view } = cluster;
  const known = new KnownTemplates(view, log);
  const closing = new AbortController();
  const { signal } = closing;
  /** What is made here, or arrives, at the moment, by id: how many are at it. */
  const atWork = new Map<string, number>();
  const running = new DisposableStack();
  /** What is stored here. Undefined until the machines are recovered. */
  let stored: Pick<TemplateTravel, "get"> | undefined;
  let lookAgain: ((id: string) => void) | undefined;

  const busy = (id: string) => {
    atWork.set(id, (atWork.get(id) ?? 0) + 1);
    return () => {
      const left = (atWork.get(id) ?? 1) - 1;
      if (left > 0) return void atWork.set(id, left);
      atWork.delete(id);
      // What the directory said meanwhile was not looked at.
      lookAgain?.(id);
    };
  };
  const tell = async (
    { template, taken, ...place }: MadeTemplate,
    { limit, ...how }: { ifTaken: IfTaken; createdAt?: string; limit: AbortSignal },
  ) => {
    const files = await keptContents(place, template, limit);
    const { id, app, name } = template;
    const shared = { id, app, name, digest: digestOf(template, files), bytes: bytesOf(files), taken };
    await claimTemplate(shared, host, { directory, ...how });
  };
  const persist = (work: () => Promise<void>, what: string) => background(untilDone(work, { what, log, signal }), what);
  const left = (which: Which) => {
    const isSo = () => !atWork.has(which.id) && stored?.get(which.id) === undefined;
    persist(() => leaveTemplate(which, [host], { directory, isSo }), `telling that template ${which.id} is gone here`);
  };
  return {
    known,
    busy,
    requireFree: (app, name) => requireFreeName({ app, name }, directory),
    async claim(made, store, limit) {
      using over = new DisposableStack();
      over.defer(busy(made.template.id));
      try {
        await tell(made, { ifTaken: "refuse", limit });
        store();
      } catch (error) {
        left(made.template);
        throw error;
      }
    },
    async end(which) {
      await endTemplate(which, directory);
    },
    left,
    follow(travel) {
      stored = travel;
      const isBusy = (id: string) => atWork.has(id);
      const parts = { cluster, travel, left, isBusy };
      const lost = new LostTemplates({
        ...{ cluster, travel, isBusy, log, signal },
        tell: async (template, createdAt) =>
          tell(await travel.made(template), { ifTaken: "go without", createdAt, limit: signal }),
      });
      const dropping = new Set<string>();
      const drop = (id: string) => {
        if (dropping.has(id)) return;
        dropping.add(id);
        const work = () => travel.drop(id).then(() => void dropping.delete(id));
        persist(work, `deleting template ${id}, which was deleted on another host`);
      };
      const look = (templates: readonly SharedTemplate[]) => {
        for (const template of templates) lookAt(template, { ...parts, drop });
      };
      lookAgain = (id) => {
        const said = known.all().filter((template) => template.id === id);
        look(said);
        // Its app, or the directory's memory of it, may have gone while nobody looked.
        if (said.every(({ hosts }) => !hosts.includes(host))) lost.lookAt(id);
      };
      /** What is under way: each template that is forgotten changes the directory, which leads here again. */
      const leaving = new Set<string>();
      const leave = () => {
        // One host is enough for what nobody else can say.
        for (const { template, hosts } of decides(cluster) ? known.ofLeavers() : []) {
          const key = [template.id, ...hosts].join(" ");
          if (leaving.has(key)) continue;
          leaving.add(key);
          const isGone = (name: string) => view.host(name) === undefined;
          const work = async () => {
            const gone = hosts.filter(isGone);
            // One that has joined again meanwhile says itself what it has.
            await leaveTemplate(template, gone, { directory, isSo: () => gone.every(isGone) });
            leaving.delete(key);
          };
          persist(work, "forgetting templates of hosts that left the cluster");
        }
      };
      running.defer(
        view.subscribe(KEYS.templates, (changes) => {
          look(changes.flatMap(({ key, value }) => (value === null ? [] : (known.read(key, JSON.parse(value)) ?? []))));
          leave();
        }),
      );
      running.defer(view.subscribe(KEYS.members, leave));
      running.defer(cluster.lease.subscribe((state) => state === "live" && lost.lookAtAll()));
      look(known.all());
      leave();
      lost.lookAtAll();
    },
    close() {
      lookAgain = undefined;
      running.dispose();
      closing.abort();
    },
  };
}

interface Parts {
  cluster: Cluster;
  travel: Pick<TemplateTravel, "get">;
  left(which: Which): void;
  isBusy(id: string): boolean;
}

/** Gives up what was ended on another host, and takes back what the directory says of this host and is not so. */
function lookAt(
  template: SharedTemplate,
  { cluster, travel, left, isBusy, drop }: Parts & { drop(id: string): void },
): void {
  const { id, hosts, ended } = template;
  if (!hosts.includes(cluster.host) || isBusy(id)) return;
  const isHere = travel.get(id) !== undefined;
  if (isHere && ended === true) drop(id);
  else if (!isHere) left(template);
}
