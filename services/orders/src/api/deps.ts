/** The parts that the API is built from, and its type. */
import type { TypeBoxTypeProvider } from "@fastify/type-provider-typebox";
import type {
  FastifyBaseLogger,
  FastifyInstance,
  RawReplyDefaultExpression,
  RawRequestDefaultExpression,
  RawServerDefault,
} from "fastify";
import type { Storage } from "../storage.ts";

/** What the API works with. */
export interface ApiDeps {
  storage: Storage;
  logger: FastifyBaseLogger;
}

/** The Fastify instance of the API: its handlers are typed by their schemas. */
export type Api = FastifyInstance<
  RawServerDefault,
  RawRequestDefaultExpression,
  RawReplyDefaultExpression,
  FastifyBaseLogger,
  TypeBoxTypeProvider
>;
