/** How many requests each token may make per minute. */
import rateLimit from "@fastify/rate-limit";
import { HibernautError } from "@hibernaut/domain/errors";
import type { FastifyRequest } from "fastify";
import type { Api, Rates } from "./deps.ts";

type Kind = keyof Rates;

const WINDOW_MS = 60_000;
/** More tokens than use the API within a minute. The one that was quiet for longest is forgotten first. */
const MAX_TOKENS = 10_000;

const NOUNS: Readonly<Record<Kind, string>> = {
  reads: "requests that read",
  changes: "requests that change something",
  execs: "commands, copies and forwarded connections",
};
const SETTINGS: Readonly<Record<Kind, string>> = {
  reads: "HIBERNAUT_RATE_READS",
  changes: "HIBERNAUT_RATE_CHANGES",
  execs: "HIBERNAUT_RATE_EXECS",
};

/** Refuses a token's requests beyond its rates. Call it after the hook that finds the token. */
export async function limitRates(app: Api, rates: Rates): Promise<void> {
  if (Object.values(rates).every((limit) => limit === 0)) return;
  await app.register(rateLimit, { global: false, cache: MAX_TOKENS * Object.keys(rates).length });
  const count = app.createRateLimit({
    timeWindow: WINDOW_MS,
    keyGenerator: (request) => `${kindOf(request)} ${request.token?.id}`,
    max: (request) => rates[kindOf(request)],
  });
  app.addHook("onRequest", async (request) => {
    const kind = kindOf(request);
    // A request of another host was counted there.
    if (request.token === null || request.peer !== null || rates[kind] === 0) return;
    const counted = await count(request);
    if (!counted.isAllowed && counted.isExceeded) throw tooMany(request, kind, counted.ttl);
  });

  function tooMany({ token }: FastifyRequest, kind: Kind, ttlMs: number): HibernautError {
    const waitS = Math.max(1, Math.ceil(ttlMs / 1000));
    const message = `Token ${token?.name} (${token?.id}) made more than ${rates[kind]} ${NOUNS[kind]} in a minute. Try again in ${waitS} s, or raise ${SETTINGS[kind]} on the platform.`;
    return new HibernautError("resource_exhausted", message, { limit: rates[kind], per: kind, retry_after_s: waitS });
  }
}

function kindOf({ method, routeOptions }: FastifyRequest): Kind {
  if (routeOptions.config.scope === "exec") return "execs";
  return method === "GET" ? "reads" : "changes";
}
