/** What queries of GraphQL are answered from: apps, machines, the region, and the one organisation. */
import { type Ask, path } from "../ask.ts";
import { PlatformRefusal } from "../failure.ts";
import { machineView } from "../view/machine.ts";
import { appView, ORGANIZATION } from "../view/others.ts";
import type { PlatformApp, PlatformMachine } from "../view/platform.ts";
import { type Fields, type Resolver, Whole } from "./answer.ts";
import { QueryError } from "./error.ts";

/** What every app lacks here: addresses of its own, releases, what was built for it, trouble of Fly's hosts. */
const NONE = { nodes: [] } satisfies Fields;
const NEVER = {
  ...{ version: 0, currentRelease: null, currentReleaseUnprocessed: null, config: null, imageDetails: null },
  ...{ role: null, services: [], ipAddresses: NONE, sharedIpAddress: null, hostIssues: NONE },
} satisfies Fields;

const { name, slug } = ORGANIZATION;
const ORGANIZATION_FIELDS: Fields = {
  // A number as a text, unlike in the Machines API.
  ...{ id: slug, slug, rawSlug: slug, name, internalNumericId: String(ORGANIZATION.internal_numeric_id) },
  // Commands end where nobody pays.
  ...{ type: "PERSONAL", viewerRole: "admin", paidPlan: true, billable: true, addOns: NONE },
};

/** Everything that can be asked, each with a request to the platform when it is. */
export function fieldsFor(ask: Ask): Fields {
  const app: Resolver = async ({ name: wanted, id }) => appFields(ask, await appNamed(ask, text(wanted ?? id)));
  return {
    app,
    apps: async ({ organizationId: of = null }) => {
      const { apps } = (of === null || of === slug ? await ask("GET", "/v1/apps") : { apps: [] }) as {
        apps: PlatformApp[];
      };
      return {
        nodes: apps.map((one) => appFields(ask, one)),
        pageInfo: { hasNextPage: false, endCursor: null },
        totalCount: apps.length,
      };
    },
    machine: async ({ machineId, id }) => {
      const wanted = text(machineId ?? id);
      const machine = ((await ask("GET", "/v1/machines")) as PlatformMachine[]).find((one) => one.id === wanted);
      if (machine === undefined)
        throw new QueryError(`Could not find Machine ${JSON.stringify(wanted.slice(0, 80))}`, "NOT_FOUND");
      return machineFields(ask, machine);
    },
    nearestRegion: async () => (await regions(ask)).nearest,
    platform: async () => {
      const { all, nearest } = await regions(ask);
      return { regions: all, requestRegion: nearest["code"] };
    },
    organization: ({ slug: wanted, id, name: named }) => {
      const one = text(wanted ?? id ?? named);
      if (one === slug) return ORGANIZATION_FIELDS;
      throw new QueryError(
        `Could not find Organization ${JSON.stringify(one.slice(0, 80))}: there is one, ${JSON.stringify(slug)}.`,
        "NOT_FOUND",
      );
    },
    latestImageDetails: ({ image }) => {
      // Clients look for the first two words, and continue without.
      throw new QueryError(`Unknown repository ${text(image).slice(0, 120)}: Fly's images are not here.`, "NOT_FOUND");
    },
    organizations: { nodes: [ORGANIZATION_FIELDS] },
    personalOrganization: ORGANIZATION_FIELDS,
  };
}

async function appNamed(ask: Ask, wanted: string): Promise<PlatformApp> {
  try {
    return (await ask("GET", path`/v1/apps/${wanted}`)) as PlatformApp;
  } catch (error) {
    if (error instanceof PlatformRefusal && error.code === "not_found")
      throw new QueryError(`Could not find App ${JSON.stringify(wanted.slice(0, 80))}`, "NOT_FOUND");
    throw error;
  }
}

function appFields(ask: Ask, platformApp: PlatformApp): Fields {
  const { id, name: called, internal_numeric_id, status, network, cname_target } = appView(platformApp);
  return {
    ...NEVER,
    ...{ id, name: called, internalNumericId: internal_numeric_id, status, network },
    ...{ hostname: cname_target, cnameTarget: cname_target, appUrl: platformApp.urls[0] ?? "" },
    ...{ deployed: status === "deployed", platformVersion: "machines", organization: ORGANIZATION_FIELDS },
    machines: async () => {
      const all = (await ask("GET", path`/v1/apps/${called}/machines`)) as PlatformMachine[];
      return { nodes: all.map((machine) => machineFields(ask, machine)), totalCount: all.length };
    },
    // Taken as it is said: a client that makes a machine of it hears whether there is such an image, and which one it is.
    image: ({ ref }) => ({ id: text(ref), ref: text(ref), digest: "", compressedSizeFull: "0", manifest: null }),
  };
}

function machineFields(ask: Ask, machine: PlatformMachine): Fields {
  const { id, name: called, state, region, instance_id, config, created_at, updated_at } = machineView(machine);
  return {
    ...{ id, name: called, state, region, instanceId: instance_id, createdAt: created_at, updatedAt: updated_at },
    app: async () => appFields(ask, await appNamed(ask, machine.app_name)),
    config: new Whole(config),
    ips: NONE,
    host: { id: region },
  };
}

async function regions(ask: Ask): Promise<{ all: Fields[]; nearest: Fields }> {
  const { regions: known, nearest } = (await ask("GET", "/v1/platform/regions")) as {
    regions: { code: string; name: string }[];
    nearest: string;
  };
  const all = known.map(
    ({ code, name: called }): Fields => ({
      ...{ code, name: called, gatewayAvailable: true, requiresPaidPlan: false, deprecated: false },
      // Nobody said where on earth the host is.
      ...{ latitude: null, longitude: null },
    }),
  );
  return { all, nearest: all.find(({ code }) => code === nearest) ?? { code: nearest, name: nearest } };
}

function text(value: unknown): string {
  return typeof value === "string" ? value : "";
}
