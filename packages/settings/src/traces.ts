/** Settings of traces. */
import { optionalText, text } from "./forms.ts";

export const TRACE_SETTINGS = {
  tracesEndpoint: optionalText("HIBERNAUT_TRACES_ENDPOINT", {
    pattern: "^https?://[^\\s]+$",
    accepts: "an http or https address such as http://127.0.0.1:4318",
    description:
      "Where [traces](tracing.md) are sent, by OTLP over HTTP: to `/v1/traces` below this address. Without it, `OTEL_EXPORTER_OTLP_ENDPOINT` counts, and without that there are no traces.",
  }),
  tracesSample: text("HIBERNAUT_TRACES_SAMPLE", {
    default: "1",
    pattern: "^(0(\\.\\d+)?|1(\\.0+)?)$",
    accepts: "a number from 0 to 1, such as 0.05",
    description:
      "The part of the requests that is [traced](tracing.md#choose-which-requests-are-traced), of those that come without a `traceparent`. The default is all of them, because you turn traces on to see some.",
  }),
};
