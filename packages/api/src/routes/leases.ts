/** `.../machines/{machine_id}/lease`: for a while, only the client that has the nonce changes the machine. */
import {
  DEFAULT_LEASE_TTL_S,
  LEASE_DESCRIPTION_MAX_LENGTH,
  LEASE_NONCE_HEADER,
  LEASE_TTL_S,
} from "@hibernaut/domain/lease";
import type { LeaseView } from "@hibernaut/machines";
import { type Static, Type } from "typebox";
import type { Api, ApiDeps } from "../deps.ts";
import { nonceOf } from "../lease-guard.ts";
import { routesOf } from "../route.ts";
import { closed, ForceQuery, Ok } from "../schemas.ts";
import { leaseWire } from "../views.ts";
import { leaseParts, MachineParams } from "./machines.schemas.ts";

const route = routesOf("machines");
const PATH = "/v1/apps/:app_name/machines/:machine_id/lease";

/** How long a lease lasts, in seconds. */
const leaseTtl = Type.Integer({
  ...LEASE_TTL_S,
  description: `Seconds that the lease lasts. Default: ${DEFAULT_LEASE_TTL_S}.`,
});

const LeaseBody = Type.Object(
  {
    ttl: Type.Optional(leaseTtl),
    description: Type.Optional(
      Type.String({ maxLength: LEASE_DESCRIPTION_MAX_LENGTH, description: "What it is for, for people." }),
    ),
  },
  { ...closed, title: "LeaseRequest" },
);

const LeaseReply = Type.Object(
  {
    ...leaseParts,
    version: Type.String({ description: "The machine's version." }),
  },
  { ...closed, title: "Lease", description: "A client changes the machine, and no other one does." },
);

const OwnLease = Type.Object(
  {
    nonce: Type.String({
      description: `Sent as \`${LEASE_NONCE_HEADER}\` with what changes the machine. Not shown again.`,
    }),
    ...LeaseReply.properties,
  },
  { ...closed, title: "OwnLease", description: "A lease, as the client that has it is told." },
);

/** Registers the routes of leases. */
export function leaseRoutes(app: Api, { leases }: Pick<ApiDeps, "leases">): void {
  app.post(
    PATH,
    route(
      "Take a lease on a machine, or renew it with its nonce",
      { scope: "deploy", audited: ["ttl"] },
      {
        description: `With the nonce of a lease that lives, as \`${LEASE_NONCE_HEADER}\`, that one lasts \`ttl\` seconds from now. Refused with \`lease_held\` while another client has one.`,
        params: MachineParams,
        optionalBody: LeaseBody,
        reply: OwnLease,
      },
    ),
    async (request) => {
      const { app_name: appName, machine_id: word } = request.params;
      const wish = { ...request.body, owner: ownerOf(request) };
      const { nonce, ...view } = leases.take(appName, word, wish, nonceOf(request));
      return { nonce, ...replyOf(view) };
    },
  );

  app.get(
    PATH,
    route("Show who has a lease on a machine", { scope: "read" }, { params: MachineParams, reply: LeaseReply }),
    async ({ params }) => replyOf(leases.get(params.app_name, params.machine_id)),
  );

  app.delete(
    PATH,
    route(
      "Give a lease back, or with `force` end that of another client",
      { scope: "deploy" },
      { params: MachineParams, querystring: ForceQuery, reply: Ok },
    ),
    async (request) => {
      const { app_name: appName, machine_id: word } = request.params;
      if (request.query.force === true) leases.clear(appName, word);
      else leases.release(appName, word, nonceOf(request));
      return { ok: true as const };
    },
  );
}

/**
 * Whom a lease is said to belong to: the id of the request's token. Its name would tell an app's token, and its webhooks, how
 * tokens are named that reach further.
 */
export function ownerOf({ token }: { token: { id: string } | null }): string {
  return token?.id ?? "unknown";
}

function replyOf({ lease, version }: LeaseView): Static<typeof LeaseReply> {
  return { ...leaseWire(lease), version };
}
