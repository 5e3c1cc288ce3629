/**
 * What the schemas of all routes are made of. Each route has its own with it, or in `routes/<name>.schemas.ts`: they
 * check requests, type the handlers, and are the OpenAPI document, from which the client's types are generated.
 *
 * A schema with a `title` appears in the document once, under `components`, and is referred to everywhere else.
 */
import { ERROR_STATUS } from "@hibernaut/domain/errors";
import { STATES } from "@hibernaut/domain/machine";
import { SIGNAL_MAX_LENGTH } from "@hibernaut/domain/signals";
import { type Static, type TSchema, Type } from "typebox";

/** Refuses keys that a schema doesn't name. */
export const closed = { additionalProperties: false } as const;

/** RFC 3339, in UTC. */
export const time = Type.String({ format: "date-time" });

/** A number of bytes. */
export const bytes = Type.Integer({ minimum: 0, description: "Bytes." });

/** A digest of an image, or of one of its layers. */
export const digestOf = (description: string) => Type.String({ pattern: "^sha256:[0-9a-f]{64}$", description });

/** The digest of an image. */
export const digest = digestOf("Digest of the image.");

/** The schema, or null. The description belongs to both. */
export function nullable<T extends TSchema>(schema: T, description?: string) {
  return Type.Union([schema, Type.Null()], description === undefined ? {} : { description });
}

/** One of these words. */
export function oneOf<const Word extends string>(words: readonly Word[], options: { title?: string } = {}) {
  return Type.Unsafe<Word>({ type: "string", enum: [...words], ...options });
}

/** One word or several: repeated in the query, separated by commas, or both. */
export function wordsOf(description: string) {
  return Type.Optional(
    Type.Union([Type.String(), Type.Array(Type.String())], {
      description: `${description} Repeat it, or separate values by commas.`,
    }),
  );
}

/** Returns the words of a query that {@link wordsOf} describes. */
export function wordsIn(query: string | string[] | undefined): string[] {
  const parts = [query ?? []].flat().flatMap((part) => part.split(","));
  return parts.map((word) => word.trim()).filter((word) => word !== "");
}

/** What a machine is doing. */
export const machineState = oneOf(STATES, { title: "MachineState" });

/** What runs in a machine or was released. */
export const imageReference = Type.Object(
  {
    ref: Type.String({ description: "The reference as it was given." }),
    digest: Type.String({ description: "The digest that the reference resolved to." }),
  },
  closed,
);

/** For routes that take no query: any parameter is refused. */
export const NoQuery = Type.Object({}, closed);

/** For routes that take no body: any key is refused. */
export const NoBody = Type.Object({}, closed);

/** The name of a signal. */
export const signalName = (description: string) =>
  Type.String({ pattern: "^SIG[A-Z0-9]+$", maxLength: SIGNAL_MAX_LENGTH, description });

/** `?force=true` */
export const ForceQuery = Type.Object(
  { force: Type.Optional(Type.Boolean({ description: "Default: false." })) },
  closed,
);

/** `?limit=20` */
export const EventsQuery = Type.Object(
  {
    limit: Type.Optional(
      Type.Integer({ minimum: 1, maximum: 1000, description: "Return at most this many. Default: 100." }),
    ),
  },
  closed,
);

/** The reply of routes that have nothing else to say. */
export const Ok = Type.Object({ ok: Type.Literal(true) }, closed);

/** The reply of every route when something goes wrong. */
export const ErrorBody = Type.Object(
  {
    error: oneOf(Object.keys(ERROR_STATUS) as (keyof typeof ERROR_STATUS)[]),
    message: Type.String({ description: "For people: what happened, why, and what to do next." }),
    details: Type.Record(Type.String(), Type.Unknown(), { description: "The same, for programs." }),
    request_id: Type.String({ description: "The platform's log mentions the request under this id." }),
  },
  { ...closed, title: "Error" },
);

/** An error on the wire. */
export type ErrorWire = Static<typeof ErrorBody>;

/** Returns the replies of a route: the good one, and the error that any route may answer with. */
export function replies<const Status extends number, T extends TSchema>(status: Status, schema: T) {
  return { [status]: schema, default: ErrorBody } as unknown as { [K in Status]: T } & { default: TSchema };
}

/**
 * Returns the replies of a route whose good one isn't a JSON document but a stream, or another protocol.
 *
 * @param schema of each part of a stream that has parts
 */
export function streamed(status: number, type: string, description: string, schema: TSchema = {}) {
  return { [status]: { description, content: { [type]: { schema } } }, default: ErrorBody };
}
