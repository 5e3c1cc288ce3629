/** `/v1/apps/{app_name}/machines`: everything except actions and waiting. */
import type { MachineConfig } from "@hibernaut/domain/config";
import { HibernautError } from "@hibernaut/domain/errors";
import { given } from "@hibernaut/lib/given";
import { newLease } from "@hibernaut/machines";
import { within } from "../access.ts";
import { clientGone } from "../client-gone.ts";
import { bringTemplate, type RequireStart } from "../cluster/templates.ts";
import type { Api, ApiDeps } from "../deps.ts";
import { FILTER_DESCRIPTION, filterOf, isWanted, MachinesQuery } from "../machine-filter.ts";
import { requireCluster } from "../require-cluster.ts";
import { routesOf } from "../route.ts";
import { requireSandboxes } from "../sandboxes.ts";
import { EventsQuery, ForceQuery, Ok } from "../schemas.ts";
import { eventWire, machineWire } from "../views.ts";
import { AppParams } from "./apps.schemas.ts";
import { ownerOf } from "./leases.ts";
import {
  CreateMachineBody,
  MachineEventList,
  MachineList,
  MachineParams,
  MachineReply,
  UpdateMachineBody,
} from "./machines.schemas.ts";

const route = routesOf("machines");

const EVENTS_LIMIT = 100;
const COLLECTION = "/v1/apps/:app_name/machines";
const ITEM = `${COLLECTION}/:machine_id`;

const CONFIG_OR_TEMPLATE =
  "A machine is made of `config`, or of a `template` with its configuration, to which `env` may add. Send one of the two.";
const WHERE_THE_TEMPLATE_IS =
  "A machine from a template is made in the region of the template: leave out `region`. In a cluster, `host` chooses the host.";
const SANDBOX_NEEDS_TEMPLATE = "Sandboxes are made from templates: send `template`, or leave `sandbox` out.";
const NOTHING_TO_PREWARM = "A prewarm starts a new configuration: send `config`, or leave `prewarm` out.";

/** A machine may read itself, through its local API. */
const ITSELF = { scope: "read", inside: "self" } as const;

/** Registers the routes of machines. */
export function machineRoutes(
  app: Api,
  { machines, templates, cluster, sandboxes }: Pick<ApiDeps, "machines" | "templates" | "cluster" | "sandboxes">,
): void {
  app.get(
    "/v1/machines",
    route(
      "List the machines of all apps",
      { scope: "read", limited: "filtered" },
      { description: FILTER_DESCRIPTION, querystring: MachinesQuery, reply: MachineList },
    ),
    async (request) => {
      const filter = filterOf(request.query);
      const reached = within(request, machines.all(), ({ record }) => record.app);
      return reached.map(machineWire).filter((machine) => isWanted(machine, filter));
    },
  );

  app.get(
    COLLECTION,
    route(
      "List the machines of an app",
      { scope: "read" },
      { description: FILTER_DESCRIPTION, params: AppParams, querystring: MachinesQuery, reply: MachineList },
    ),
    async ({ params, query }) => {
      const filter = filterOf(query);
      return machines
        .list(params.app_name)
        .map(machineWire)
        .filter((machine) => isWanted(machine, filter));
    },
  );

  app.post(
    COLLECTION,
    route(
      "Create a machine and start it",
      { scope: "deploy", audited: ["name"] },
      { params: AppParams, body: CreateMachineBody, created: MachineReply },
    ),
    async (request, reply) => {
      requireCluster({ cluster }, request.body.host);
      const { name, region, config, template, env, sandbox, ...body } = request.body;
      const { skip_launch: skipLaunch, skip_service_registration: cordoned } = body;
      const { app_name: appName } = request.params;
      const { lease_ttl: ttl } = body;
      const leased = ttl === undefined ? undefined : newLease({ ttl, owner: ownerOf(request) });
      const chosen = {
        ...(leased !== undefined && { lease: leased.terms }),
        ...given({ name, skipLaunch, cordoned }),
      };
      if ((config === undefined) === (template === undefined) || (env !== undefined && template === undefined))
        throw new HibernautError("invalid_argument", CONFIG_OR_TEMPLATE, { field: "config" });
      if (template !== undefined && region !== undefined)
        throw new HibernautError("invalid_argument", WHERE_THE_TEMPLATE_IS, { field: "template" });
      if (sandbox !== undefined && template === undefined)
        throw new HibernautError("invalid_argument", SANDBOX_NEEDS_TEMPLATE, { field: "sandbox" });
      const birth = { ...chosen, ...(env !== undefined && { env }) };
      const requireStart: RequireStart | undefined = skipLaunch
        ? undefined
        : (...wanted) => templates.requireStart(...wanted);
      if (template !== undefined) await bringTemplate(appName, template, { cluster, requireStart }, clientGone(reply));
      const fromTemplate = (word: string) =>
        sandbox === undefined
          ? templates.bear(appName, word, birth, clientGone(reply))
          : requireSandboxes(sandboxes).begin(appName, word, sandbox, birth, clientGone(reply));
      const view =
        template === undefined
          ? await machines.create(appName, {
              ...chosen,
              config: config as MachineConfig,
              ...(region !== undefined && { region }),
            })
          : await fromTemplate(template);
      return reply.code(201).send({ ...machineWire(view), ...(leased !== undefined && { nonce: leased.nonce }) });
    },
  );

  app.get(ITEM, route("Show a machine", ITSELF, { params: MachineParams, reply: MachineReply }), async ({ params }) =>
    machineWire(machines.get(params.app_name, params.machine_id)),
  );

  app.post(
    ITEM,
    route(
      "Update a machine",
      { scope: "deploy" },
      { params: MachineParams, body: UpdateMachineBody, reply: MachineReply },
    ),
    async (request) => {
      const {
        params,
        body: { config, prewarm = false },
      } = request;
      if (config === undefined && prewarm !== false) throw new HibernautError("invalid_argument", NOTHING_TO_PREWARM);
      const chosen = prewarm === false ? {} : ({ prewarm: prewarm === true ? "healthy" : prewarm } as const);
      const options = { ...chosen, requireStill: () => request.requireUnheld() };
      return machineWire(await machines.update(params.app_name, params.machine_id, config, options));
    },
  );

  app.delete(
    ITEM,
    route(
      "Destroy a machine; a running one needs `force`",
      { scope: "deploy" },
      { params: MachineParams, querystring: ForceQuery, reply: Ok },
    ),
    async ({ params, query }) => {
      machines.destroy(params.app_name, params.machine_id, { force: query.force ?? false });
      return { ok: true as const };
    },
  );

  app.get(
    `${ITEM}/events`,
    route("List a machine's events, newest first", ITSELF, {
      params: MachineParams,
      querystring: EventsQuery,
      reply: MachineEventList,
    }),
    async ({ params, query }) =>
      machines.events(params.app_name, params.machine_id, query.limit ?? EVENTS_LIMIT).map(eventWire),
  );
}
