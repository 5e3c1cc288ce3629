/** The world of the behavior suite: the HTTP API over a storage, with every reply checked against the OpenAPI document. */
import { pino } from "pino";
import Schema from "typebox/schema";
import { expect } from "vitest";
import { type Api, buildApp } from "../../src/api/app.ts";
import type { Storage } from "../../src/storage.ts";

/** An order for the database. Fields that a test leaves out get values that do not matter. */
export interface TestOrder {
  orderDate?: string;
  shipCountry?: string;
  lines?: { productId: number; quantity: number }[];
}

/** A storage with a new, empty database. */
export interface StorageWorld {
  storage: Storage;
  /** Adds an order and its lines to the database, without the API. Returns its id. */
  insertOrder(order: TestOrder): Promise<number>;
  /** Runs one statement without the API. Rejects with the database's error. Both variants understand `"quoted"` names. */
  execute(statement: string): Promise<void>;
  /** Runs one statement like a database that does not check references. */
  executeUnchecked(statement: string): Promise<void>;
  /** Closes the storage and removes the database. */
  dispose(): Promise<void>;
}

/** How to open a variant's storage, and how variants may differ. */
export interface Variant {
  open(): Promise<StorageWorld>;
  /** Whether a changed id also changes in rows that refer to it. Otherwise the database refuses the change. */
  cascadesUpdates: boolean;
  /** How many random catalogues are searched; 60 by default. */
  searchRuns?: number;
}

export interface Reply {
  status: number;
  headers: Record<string, unknown>;
  // oxlint-disable-next-line typescript/no-explicit-any -- what a test expects of it differs from test to test
  body: any;
}

interface Operation {
  responses: Record<string, { content?: Record<string, { schema: object }> }>;
}

/** The parts of the OpenAPI document that tests look at. */
export interface ApiDocument {
  openapi: string;
  paths: Record<string, Record<string, Operation>>;
  components: { schemas: Record<string, object> };
}

export type Method = "GET" | "POST" | "PUT" | "PATCH" | "DELETE";

/** The API over a storage, with a log that tests can read. */
export interface TestApp {
  app: Api;
  document: ApiDocument;
  /** What was logged at level info and above. */
  logged: Record<string, unknown>[];
  /** Sends a request, with a string body as it is. Fails the test when the reply does not match the document. */
  call(method: Method, path: string, body?: unknown, headers?: Record<string, string>): Promise<Reply>;
  close(): Promise<void>;
}

/** Builds the API over a storage. */
export async function openTestApp(storage: Storage): Promise<TestApp> {
  const logged: Record<string, unknown>[] = [];
  const write = (line: string) => void logged.push(JSON.parse(line) as Record<string, unknown>);
  const app = await buildApp({ storage, logger: pino({ level: "info" }, { write }) });
  const document = (await app.inject("/openapi.json")).json<ApiDocument>();
  return {
    app,
    document,
    logged,
    async call(method, path, body, headers = {}) {
      const payload = typeof body === "string" ? body : JSON.stringify(body);
      const sent = body === undefined ? {} : { payload, headers: { "content-type": "application/json", ...headers } };
      const response = await app.inject({ method, url: path, headers, ...sent });
      const reply = {
        status: response.statusCode,
        headers: response.headers,
        body: response.body === "" ? undefined : response.json<unknown>(),
      };
      checkReply(document, method, path, reply);
      return reply;
    },
    close: () => app.close(),
  };
}

/** Fails the test unless the document allows the reply. */
export function checkReply(document: ApiDocument, method: string, path: string, reply: Reply): void {
  const type = String(reply.headers["content-type"]).split(";", 1)[0] ?? "";
  const said = `${method} ${path} -> ${reply.status} ${JSON.stringify(reply.body)?.slice(0, 500)}`;
  if (reply.status >= 400) {
    expect(type, said).toBe("application/problem+json");
    expect(reply.body.status, said).toBe(reply.status);
  }
  const operation = operationOf(document, method, path.split("?", 1)[0] ?? "");
  if (!operation) return expectSchema(document, { $ref: "#/components/schemas/Problem" }, reply.body, said);
  const response = operation.responses[reply.status] ?? (reply.status >= 400 ? operation.responses.default : undefined);
  expect(response, `in the document: ${said}`).toBeDefined();
  const schema = response?.content?.[type]?.schema;
  if (schema) expectSchema(document, schema, reply.body, said);
  else expect(reply.body, said).toBeUndefined();
}

function expectSchema(document: ApiDocument, schema: object, value: unknown, said: string): void {
  const [, errors] = Schema.Errors({ ...schema, components: document.components }, value);
  expect(errors, said).toEqual([]);
}

function operationOf(document: ApiDocument, method: string, path: string): Operation | undefined {
  const matches = (template: string) => new RegExp(`^${template.replaceAll(/\{\w+\}/g, "[^/]+")}$`).test(path);
  return Object.entries(document.paths).find(([template]) => matches(template))?.[1][method.toLowerCase()];
}
