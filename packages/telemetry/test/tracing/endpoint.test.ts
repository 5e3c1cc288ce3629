/** Where traces are sent, and when there are none. */
import { expect, test } from "vitest";
import { tracesEndpoint } from "../../src/tracing/endpoint.ts";

test.each<[string | undefined, Record<string, string>, ReturnType<typeof tracesEndpoint>]>([
  [undefined, {}, {}],
  ["http://127.0.0.1:4318", {}, { url: "http://127.0.0.1:4318/v1/traces" }],
  ["https://collector.example.com/otlp/", {}, { url: "https://collector.example.com/otlp/v1/traces" }],
  // Ours comes first, whatever else the environment says.
  [
    "http://a:1",
    { OTEL_EXPORTER_OTLP_ENDPOINT: "http://b:2", OTEL_SDK_DISABLED: "true" },
    { url: "http://a:1/v1/traces" },
  ],
  [undefined, { OTEL_EXPORTER_OTLP_ENDPOINT: "http://b:2" }, { url: "http://b:2/v1/traces" }],
  [undefined, { OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: "http://b:2/x" }, { url: "http://b:2/x" }],
  [
    undefined,
    { OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: "http://b:2/x", OTEL_EXPORTER_OTLP_ENDPOINT: "http://c:3" },
    { url: "http://b:2/x" },
  ],
  [undefined, { OTEL_EXPORTER_OTLP_ENDPOINT: "http://b:2", OTEL_SDK_DISABLED: "TRUE" }, {}],
  [undefined, { OTEL_EXPORTER_OTLP_ENDPOINT: "http://b:2", OTEL_TRACES_EXPORTER: "none" }, {}],
  [undefined, { OTEL_EXPORTER_OTLP_ENDPOINT: "" }, {}],
  [undefined, { OTEL_EXPORTER_OTLP_ENDPOINT: "b:4317" }, { unusable: "OTEL_EXPORTER_OTLP_ENDPOINT" }],
  [undefined, { OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: "unix:/x" }, { unusable: "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT" }],
  ["http://[::1", {}, { unusable: "HIBERNAUT_TRACES_ENDPOINT" }],
])("%s with %j: %j", (own, environment, expected) => {
  expect(tracesEndpoint({ tracesEndpoint: own }, environment)).toEqual(expected);
});
