/**
 * What a change of an app's secrets does to the machines of other hosts. The directory says only a moment later how a machine
 * is, so a snapshot that was taken just before the change would be missed: their hosts are asked before it.
 */
import { isResting } from "@hibernaut/domain/machine";
import type { SecretsEffect } from "@hibernaut/machines";
import type { FastifyRequest } from "fastify";
import type { Api } from "../deps.ts";
import type { MachineWire } from "../routes/machines.schemas.ts";
import type { AskHosts } from "./ask-hosts.ts";

const SECRETS = "/v1/apps/:app_name/secrets";
const CHANGES: ReadonlySet<string> = new Set([`POST ${SECRETS}`, `DELETE ${SECRETS}/:secret_name`]);

type Asked = Pick<MachineWire, "id" | "state" | "snapshot">;

/** Registers the hooks. */
export function tellSecretsEffect(app: Api, ask: AskHosts): void {
  const before = new WeakMap<FastifyRequest, Asked[]>();

  app.addHook("preHandler", async (request) => {
    const { method, routeOptions, peer, params } = request;
    if (peer !== null || !CHANGES.has(`${method} ${routeOptions.url}`)) return;
    const { app_name: name } = params as { app_name: string };
    const { answers } = await ask(request, { path: `/v1/apps/${encodeURIComponent(name)}/machines` });
    before.set(
      request,
      answers.flatMap(({ body }) => body as Asked[]),
    );
  });

  app.addHook("preSerialization", async (request, reply, payload) => {
    const machines = before.get(request);
    if (machines === undefined || reply.statusCode !== 200) return payload;
    return corrected(payload as SecretsEffect, machines);
  });
}

/** The effect, in which each of these machines is where its own host had it before the change. */
export function corrected({ discarded, pending }: SecretsEffect, machines: readonly Asked[]): SecretsEffect {
  const asleep = new Set(
    machines.filter((each) => isResting(each.state) && each.snapshot !== null).map(({ id }) => id),
  );
  const known = new Set(machines.map(({ id }) => id));
  const all = [...discarded, ...pending];
  const isDiscarded = (id: string) => (known.has(id) ? asleep.has(id) : discarded.includes(id));
  return { discarded: all.filter(isDiscarded), pending: all.filter((id) => !isDiscarded(id)) };
}
