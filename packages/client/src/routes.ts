/** Which requests the API takes and what it replies, by method and path, as the OpenAPI document says. */
import type { paths } from "./openapi.d.ts";
import type { ListOptions } from "./transport.ts";

/** A path of the API, with the names of its parts in braces. */
export type Path = keyof paths;

/** The methods that the API uses. */
export type Method = "get" | "post" | "put" | "patch" | "delete";

/** What one request consists of. Parts that the route does not take are left out. */
export type RouteRequest<P extends Path, M extends Method> = ListOptions &
  Part<"params", Operation<P, M>["parameters"]["path"]> &
  Part<"query", AllowUndefined<Operation<P, M>["parameters"]["query"]>> &
  Part<"body", AllowUndefined<JsonOf<NonNullable<Operation<P, M>["requestBody"]>>>>;

/** The JSON of a successful reply. */
export type RouteReply<P extends Path, M extends Method> = JsonOf<Success<Operation<P, M>["responses"]>>;

interface AnyOperation {
  parameters: { path?: unknown; query?: unknown };
  requestBody?: unknown;
  responses: unknown;
}

type Operation<P extends Path, M extends Method> = paths[P][M] extends AnyOperation ? paths[P][M] : never;

type Success<Responses> = Responses extends { 200: infer Reply } | { 201: infer Reply } ? Reply : never;

type JsonOf<Content> = Content extends { content: { "application/json": infer Json } } ? Json : never;

/** Lets an option that wasn't given be passed on as it is. */
type AllowUndefined<Sent> = Sent extends object
  ? { [Name in keyof Sent]: Sent[Name] | (CanBeEmpty<Pick<Sent, Name>> extends true ? undefined : never) }
  : never;

/** A property for a part that a request has: optional, if an empty one would do. */
type Part<Name extends string, Value> = [Value] extends [undefined]
  ? unknown
  : CanBeEmpty<Value> extends true
    ? { [N in Name]?: Value }
    : { [N in Name]: Value };

type CanBeEmpty<Value> = Value extends Record<string, never> ? true : Partial<Value> extends Value ? true : false;
