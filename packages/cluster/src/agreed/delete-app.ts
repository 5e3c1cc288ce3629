/** The deletion of an app that may have machines and volumes on several hosts. */
import { HibernautError } from "@hibernaut/domain/errors";
import { namedApps } from "@hibernaut/domain/scopes";
import { aborted } from "@hibernaut/lib/async";
import type { Cluster } from "../cluster.ts";
import { KEYS } from "../keys.ts";
import type { Agreed } from "./agreed.ts";
import type { Draft } from "./draft.ts";
import type { AgreedApp, AgreedHostname, AgreedToken } from "./records.ts";

/** How many keys go at a time. etcd takes 128 in a transaction. */
const AT_ONCE = 100;
/** How long owners may take to give up the machines that they have destroyed. */
const GIVEN_UP_MS = 10_000;

interface DeleteOptions {
  agreed: Agreed;
  view: Cluster["view"];
  directory: Pick<Cluster["directory"], "list" | "transact">;
  /** Destroys the app's machines and volumes on all hosts, or rejects because there are any. */
  empty(): Promise<void>;
  /** When the app that is meant was created. By default, whichever has the name now. */
  createdAt?: string | undefined;
}

/**
 * Deletes an app. While that takes, nothing can be added to it. If it fails, the app stays, without the machines that are
 * gone by then.
 */
export async function deleteApp(
  app: string,
  { agreed, view, directory, empty, createdAt }: DeleteOptions,
): Promise<void> {
  await agreed.change((draft) => draft.put(KEYS.apps + app, { ...requireApp(draft, app, createdAt), deleting: true }));
  try {
    await empty();
    await noMachines(view, app);
    for (const prefix of OF_AN_APP) await forgetUnder(`${prefix}${app}/`, directory);
    while (await agreed.change((draft) => removeSome(draft, app)));
  } catch (error) {
    await agreed.change((draft) => keep(draft, app)).catch(() => {}); // the deletion can be tried again, which says why
    throw error;
  }
}

function requireApp(draft: Draft, name: string, createdAt: string | undefined): AgreedApp {
  const app = draft.get(KEYS.apps + name) as AgreedApp | undefined;
  if (app !== undefined && app.createdAt === (createdAt ?? app.createdAt)) return app;
  throw new HibernautError("not_found", `There is no app ${name.slice(0, 80)}. See \`hibernaut apps list\`.`, {
    app_name: name,
  });
}

function keep(draft: Draft, name: string): void {
  const { deleting, ...app } = (draft.get(KEYS.apps + name) ?? {}) as Partial<AgreedApp>;
  if (deleting === true) draft.put(KEYS.apps + name, app);
}

/** What tells where something of an app is: no host has any of it any more. */
const OF_AN_APP = [KEYS.volumes, KEYS.templates, KEYS.templateNames];

async function forgetUnder(prefix: string, directory: DeleteOptions["directory"]): Promise<void> {
  const { entries } = await directory.list(prefix);
  for (let first = 0; first < entries.length; first += AT_ONCE)
    await directory.transact(
      [],
      entries.slice(first, first + AT_ONCE).map(({ key }) => ({ key, value: null })),
    );
}

/** Removes what belongs to the app, and at last the app. Returns whether there is more. */
function removeSome(draft: Draft, app: string): boolean {
  const hostnames = draft.under(KEYS.hostnames).filter(({ value }) => (value as AgreedHostname).app === app);
  const owned = [...hostnames, ...draft.under(`${KEYS.releases}${app}/`)];
  // A later app of the same name belongs to others, so the tokens lose it, too.
  const tokens = draft.under(KEYS.tokens).filter(({ value }) => namedApps(value as AgreedToken).includes(app));
  const work = [
    ...owned.map(
      ({ key }) =>
        () =>
          draft.remove(key),
    ),
    ...tokens.map(({ key, value }) => () => {
      const token = value as AgreedToken;
      const left = namedApps(token).filter((name) => name !== app);
      draft.put(key, { ...token, ...(token.previewsOf === undefined ? { apps: left } : { previewsOf: left }) });
    }),
  ];
  for (const remove of work.slice(0, AT_ONCE)) remove();
  if (work.length > AT_ONCE) return true;
  if (draft.get(KEYS.secrets + app) !== undefined) draft.remove(KEYS.secrets + app);
  if (draft.get(KEYS.apps + app) !== undefined) draft.remove(KEYS.apps + app);
  return false;
}

/** Waits until nobody owns a machine of the app. */
async function noMachines(view: Cluster["view"], app: string): Promise<void> {
  const ended = new AbortController();
  const look = () => view.machines(app).length === 0 && ended.abort();
  const unsubscribe = view.subscribe(KEYS.machines, look);
  const timer = setTimeout(() => ended.abort(), GIVEN_UP_MS);
  look();
  await aborted(ended.signal);
  unsubscribe();
  clearTimeout(timer);
  const left = view.machines(app);
  if (left.length === 0) return;
  const message = `App ${app} still has ${left.length} machine(s) on ${[...new Set(left.map(({ host }) => host))].join(", ")}. Try again.`;
  throw new HibernautError("aborted", message, { machines: left.map(({ id }) => id) });
}
