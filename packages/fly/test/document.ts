/**
 * Fly's public OpenAPI document, as a client has it that is generated from it: every operation, with the shape of its
 * reply, which the client checks.
 */
import { getHttpTrait } from "@distilled.cloud/core/traits";
import { Credentials } from "@distilled.cloud/fly-io/Credentials";
import * as operations from "@distilled.cloud/fly-io/Operations";
import * as Retry from "@distilled.cloud/fly-io/Retry";
import { Effect, Layer, Redacted } from "effect";
import { FetchHttpClient } from "effect/unstable/http";

type Method = "GET" | "POST" | "PUT" | "PATCH" | "DELETE" | "HEAD";
type Operation = (input: object) => Effect.Effect<unknown, unknown, Credentials>;

/** An operation of the document: its name there, and its place below `/v1`. */
export interface Documented {
  name: string;
  method: Method;
  path: string;
}

const all = operations as unknown as Record<string, { ast?: never }>;

/** Every operation of the document, each place once. */
export function documented(): Documented[] {
  const places = new Map<string, Documented>();
  for (const [key, schema] of Object.entries(all)) {
    if (!key.endsWith("Input") || schema.ast === undefined) continue;
    const trait = getHttpTrait(schema.ast);
    if (trait === undefined) continue;
    const path = trait.path.replace(/^\/v1/, "");
    places.set(`${trait.method} ${path}`, { name: key.slice(0, -"Input".length), method: trait.method, path });
  }
  return [...places.values()];
}

/** Calls an operation by its name, and returns the reply, which is as the document says. Rejects otherwise. */
export function caller(apiBaseUrl: string, token: string): (name: string, input: object) => Promise<unknown> {
  const credentials = Layer.succeed(Credentials, { apiKey: Redacted.make(token), apiBaseUrl } as never);
  const layer = Layer.mergeAll(credentials, FetchHttpClient.layer);
  return (name, input) => {
    const operation = all[name] as unknown as Operation;
    return Effect.runPromise(operation(input).pipe(Retry.none, Effect.provide(layer)) as Effect.Effect<unknown>);
  };
}
