/** Builds: `/v3/templates`, `/v2/templates/{id}/builds/{id}`, what they are made of, and how far they are. */
import type { BuildLogEntry } from "@hibernaut/domain/build";
import type { FastifyInstance, FastifyRequest } from "fastify";
import type { Static } from "typebox";
import { ENTRIES_OF_FAULT } from "../build/limits.ts";
import { partOf } from "../build/log.ts";
import { parentOf } from "../build/parent.ts";
import { stepsOf } from "../build/steps.ts";
import { Refusal } from "../failure.ts";
import { DEFAULT_TAG, namedTemplate, requireTag, unknownName } from "../life/names.ts";
import { BuildBody, BuildParams, FileParams, StartBody, StatusQuery } from "./build-schemas.ts";
import type { ControlDeps } from "./deps.ts";

interface OfBuild {
  Params: Static<typeof BuildParams>;
}

export function buildRoutes(app: FastifyInstance, deps: ControlDeps): void {
  const { builds, needs, sandboxes, uploads, links } = deps;

  for (const path of ["/v3/templates", "/v2/templates"])
    app.post<{ Body: Static<typeof BuildBody> }>(
      path,
      { schema: { body: BuildBody } },
      async ({ sandboxApp, body }, reply) => {
        const { name, tag } = namedTemplate(body.name ?? body.alias ?? "");
        const named = [...(body.tags ?? []).map(requireTag), ...(tag === undefined ? [] : [tag])];
        const tags = named.length === 0 ? [DEFAULT_TAG] : [...new Set(named)];
        const { cpuCount: cpus, memoryMB: memoryMb } = body;
        const sizes = { ...(cpus !== undefined && { cpus }), ...(memoryMb !== undefined && { memoryMb }) };
        const build = builds.announce(sandboxApp, { name, tags, ...sizes });
        const names = { aliases: [name], names: [name] };
        return reply.code(202).send({ templateID: name, buildID: build.id, public: false, tags, ...names });
      },
    );

  app.get<{ Params: Static<typeof FileParams> }>(
    "/templates/:templateID/files/:hash",
    { schema: { params: FileParams } },
    async (request, reply) => {
      const { sandboxApp, params } = request;
      const { name } = namedTemplate(params.templateID);
      if (!builds.knows(sandboxApp, name)) throw unknownName(name);
      const upload = { app: needs.resources.apps.get(sandboxApp), hash: params.hash };
      const present = await uploads.has(upload.app, upload.hash);
      return reply.code(201).send({ present, url: `${originOf(request, deps)}/uploads?link=${links.make(upload)}` });
    },
  );

  app.post<OfBuild & { Body: Static<typeof StartBody> }>(
    "/v2/templates/:templateID/builds/:buildID",
    { schema: { params: BuildParams, body: StartBody } },
    async ({ sandboxApp, params: { templateID, buildID }, body }, reply) => {
      const { name } = namedTemplate(templateID);
      const { cpus, memoryMb } = builds.get(sandboxApp, name, buildID);
      const templateOf = (word: string) => sandboxes.requireTemplate(sandboxApp, word).template;
      const { machines, templates } = needs.resources;
      const runs = (image: string) =>
        machines.list(sandboxApp).some(({ record }) => record.config.image === image) ||
        templates.list(sandboxApp).some(({ template }) => template.machine.config.image === image);
      const parent = parentOf(body, { cpus, memoryMb }, templateOf, runs);
      const { steps = [], startCmd, readyCmd } = body;
      builds.start(sandboxApp, name, buildID, { parent, steps: stepsOf(steps), ...commandsOf({ startCmd, readyCmd }) });
      return reply.code(202).send();
    },
  );

  app.get<OfBuild & { Querystring: Static<typeof StatusQuery> }>(
    "/templates/:templateID/builds/:buildID/status",
    { schema: { params: BuildParams, querystring: StatusQuery } },
    async ({ sandboxApp, params: { templateID, buildID }, query: { logsOffset, limit, level } }) => {
      const { name } = namedTemplate(templateID);
      const build = builds.get(sandboxApp, name, buildID);
      const log = builds.log(build);
      const logEntries = partOf(log, { offset: logsOffset, limit, level });
      return {
        ...{ templateID: name, buildID, status: build.status, logEntries },
        logs: logEntries.map(({ message }) => message),
        ...(build.fault !== null && {
          reason: { ...build.fault, logEntries: entriesOf(log, build.fault.step) },
        }),
      };
    },
  );
}

/** The last that was said in a step, which says why it failed. */
function entriesOf(log: readonly BuildLogEntry[], step: string | undefined): BuildLogEntry[] {
  return log.filter((entry) => entry.step === step).slice(-ENTRIES_OF_FAULT);
}

/** Clients send empty strings for what is not set. */
function commandsOf(commands: { startCmd: string | undefined; readyCmd: string | undefined }) {
  const of = (text: string | undefined) => {
    if (text?.includes("\0")) throw new Refusal(400, "A command cannot have a zero byte.");
    return text === undefined || text.trim() === "" ? undefined : text;
  };
  return { startCmd: of(commands.startCmd), readyCmd: of(commands.readyCmd) };
}

/** Where the client found this port: what a proxy in front of it says counts, because only the client is told. */
function originOf({ headers, host }: FastifyRequest, { secure }: ControlDeps): string {
  const told = headers["x-forwarded-proto"];
  const scheme = told === "https" || told === "http" ? told : secure ? "https" : "http";
  return `${scheme}://${host}`;
}
