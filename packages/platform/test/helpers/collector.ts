/**
 * A collector for traces. Debian has none, so this one takes OTLP over HTTP as JSON, as the specification has it:
 * https://opentelemetry.io/docs/specs/otlp/#otlphttp
 */
import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";

/** A span as it was sent, with its attributes by name. */
export interface SentSpan {
  traceId: string;
  spanId: string;
  /** Empty for the root of a trace. */
  parentSpanId: string;
  name: string;
  kind: number;
  /** Nanoseconds since 1970. */
  began: bigint;
  ended: bigint;
  attributes: Record<string, unknown>;
  /** 0 unset, 1 ok, 2 error. */
  status: number;
  /** What the process says about itself. */
  resource: Record<string, unknown>;
}

interface Attribute {
  key: string;
  value: { stringValue?: string; intValue?: number | string; doubleValue?: number; boolValue?: boolean };
}

interface Exported {
  resourceSpans: {
    resource: { attributes: Attribute[] };
    scopeSpans: {
      spans: {
        traceId: string;
        spanId: string;
        parentSpanId?: string;
        name: string;
        kind: number;
        startTimeUnixNano: string;
        endTimeUnixNano: string;
        attributes: Attribute[];
        status?: { code?: number };
      }[];
    }[];
  }[];
}

export class Collector {
  readonly spans: SentSpan[] = [];
  /** The paths and the fields of the requests that came. */
  readonly requests: { path: string; headers: IncomingMessage["headers"] }[] = [];
  /** What requests are answered with: 200 takes the spans. `silence` answers nothing. */
  answer: number | "silence" = 200;
  readonly #server: Server = createServer((request, response) => void this.#take(request, response));

  static async open(): Promise<Collector> {
    const collector = new Collector();
    collector.#server.listen(0, "127.0.0.1");
    await once(collector.#server, "listening");
    return collector;
  }

  /** For example `http://127.0.0.1:4318`. */
  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** The spans of one trace with this name. */
  named(name: string, traceId?: string): SentSpan[] {
    return this.spans.filter((span) => span.name === name && (traceId === undefined || span.traceId === traceId));
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    this.#server.close();
    await once(this.#server, "close");
  }

  async #take(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = await text(request);
    this.requests.push({ path: request.url ?? "", headers: request.headers });
    if (this.answer === "silence") return;
    if (this.answer === 200) this.#keep(JSON.parse(body) as Exported);
    response.writeHead(this.answer, { "content-type": "application/json" }).end("{}");
  }

  #keep({ resourceSpans }: Exported): void {
    for (const { resource, scopeSpans } of resourceSpans)
      for (const { spans } of scopeSpans)
        for (const span of spans)
          this.spans.push({
            ...{ traceId: span.traceId, spanId: span.spanId, parentSpanId: span.parentSpanId ?? "" },
            ...{ name: span.name, kind: span.kind, status: span.status?.code ?? 0 },
            ...{ began: BigInt(span.startTimeUnixNano), ended: BigInt(span.endTimeUnixNano) },
            ...{ attributes: byName(span.attributes), resource: byName(resource.attributes) },
          });
  }
}

function byName(attributes: Attribute[]): Record<string, unknown> {
  return Object.fromEntries(attributes.map(({ key, value }) => [key, Object.values(value)[0] as unknown]));
}
