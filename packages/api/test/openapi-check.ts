/** Holds every real reply against the document that the API serves. */
import Schema from "typebox/schema";
import { expect } from "vitest";
import type { TestApi } from "./helpers.ts";

interface Operation {
  responses: Record<string, { content?: Record<string, { schema: object }> }>;
}

/** A reply of many lines, each as the document says. */
const NDJSON = "application/x-ndjson";
const EVENT_STREAM = "text/event-stream";

export interface ApiDocument {
  openapi: string;
  paths: Record<string, Record<string, Operation>>;
  components: { schemas: Record<string, object> };
}

export interface Reply {
  status: number;
  headers: Headers;
  // oxlint-disable-next-line typescript/no-explicit-any -- what a test expects of it differs from test to test
  body: any;
}

/** The content type of an archive. */
const TAR = "application/x-tar";

export type Call = (method: string, path: string, body?: unknown, init?: RequestInit) => Promise<Reply>;

/** Documents by the routes that they describe: to make one takes longer than most tests. */
const documents = new Map<string, Promise<ApiDocument>>();

/** What the API serves at `/openapi.json`. */
function documentOf({ api, url }: Pick<TestApi, "api" | "url">): Promise<ApiDocument> {
  const routes = api.printRoutes({ commonPrefix: false });
  const document =
    documents.get(routes) ?? fetch(`${url}/openapi.json`).then((reply) => reply.json() as Promise<ApiDocument>);
  documents.set(routes, document);
  return document;
}

/** A fetch that fails the test when the reply is not what the document says. */
export async function checkedCalls({ api, url, token }: Pick<TestApi, "api" | "url" | "token">): Promise<Call> {
  const document = await documentOf({ api, url });
  return async (method, path, body, init = {}) => {
    const headers = new Headers(init.headers);
    if (!headers.has("authorization")) headers.set("authorization", `Bearer ${token}`);
    if (body !== undefined && !headers.has("content-type")) headers.set("content-type", "application/json");
    const content = body === undefined ? null : typeof body === "string" ? body : JSON.stringify(body);
    const response = await fetch(url + path, { ...init, method, headers, body: content });
    const text = await response.text();
    // An archive has no schema.
    if (response.headers.get("content-type") === TAR)
      return { status: response.status, headers: response.headers, body: text };
    const parsed: unknown = isMany(response.headers) ? documentsIn(text) : JSON.parse(text);
    const reply = { status: response.status, headers: response.headers, body: parsed };
    checkReply(document, method, path, reply);
    return reply;
  };
}

/** Fails the test unless the document allows the reply. */
export function checkReply(document: ApiDocument, method: string, path: string, reply: Reply): void {
  const many = isMany(reply.headers);
  const type = many ? (reply.headers.get("content-type") ?? "") : "application/json";
  const one = replySchema(document, `${method} ${path.split("?", 1)[0] ?? ""}`, reply.status, type);
  const schema = many ? { type: "array", items: one } : one;
  const [, errors] = Schema.Errors({ ...schema, components: document.components }, reply.body);
  expect(errors, `${method} ${path} -> ${reply.status} ${JSON.stringify(reply.body)}`).toEqual([]);
  expect(reply.headers.get("x-request-id")).toBeTruthy();
  if (reply.status >= 400) expect(reply.body.request_id).toBe(reply.headers.get("x-request-id"));
}

/** Whether a reply consists of any number of documents. */
function isMany(headers: Headers): boolean {
  return [NDJSON, EVENT_STREAM].includes(headers.get("content-type") ?? "");
}

/** The documents in lines of JSON, or the data of server-sent events. */
function documentsIn(text: string): unknown[] {
  const lines = text.split("\n").map((line) => line.replace(/^data: /, ""));
  return lines.filter((line) => line.startsWith("{")).map((line): unknown => JSON.parse(line));
}

/** `route` is a method and a path. */
function replySchema(document: ApiDocument, route: string, status: number, type: string): object {
  const [method = "", path = ""] = route.split(" ");
  const item = Object.entries(document.paths).find(([template]) => matches(template, path))?.[1];
  const operation = item?.[method.toLowerCase()];
  // What is in no document still answers in the one shape of errors.
  if (!operation) return { $ref: "#/components/schemas/Error" };
  const response = operation.responses[status] ?? (status >= 400 ? operation.responses.default : undefined);
  const schema = response?.content?.[type]?.schema;
  if (!schema) throw new Error(`the document does not describe ${status} of ${route}`);
  return schema;
}

function matches(template: string, path: string): boolean {
  return new RegExp(`^${template.replaceAll(/\{\w+\}/g, "[^/]+")}$`).test(path);
}
