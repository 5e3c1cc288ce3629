/** Where traces are sent: by our own setting, or by the variables that OpenTelemetry has for all programs. Pure. */
import type { Settings } from "@hibernaut/settings";

/** What receivers of OTLP over HTTP serve below their address. */
const PATH = "v1/traces";

/** An address, or the name of the variable that does not have one. Neither, when traces are off, which they are by default. */
export interface Endpoint {
  url?: string;
  unusable?: string;
}

/** Finds out where spans are sent. */
export function tracesEndpoint(
  { tracesEndpoint: own }: Pick<Settings, "tracesEndpoint">,
  environment: NodeJS.ProcessEnv,
): Endpoint {
  if (own !== undefined) return endpoint("HIBERNAUT_TRACES_ENDPOINT", own, below);
  const { OTEL_SDK_DISABLED: disabled = "", OTEL_TRACES_EXPORTER: exporter } = environment;
  if (disabled.toLowerCase() === "true" || exporter === "none") return {};
  // The one for traces alone is used as it is.
  const forTraces = environment.OTEL_EXPORTER_OTLP_TRACES_ENDPOINT ?? "";
  if (forTraces !== "") return endpoint("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", forTraces, (address) => address);
  const shared = environment.OTEL_EXPORTER_OTLP_ENDPOINT ?? "";
  return shared === "" ? {} : endpoint("OTEL_EXPORTER_OTLP_ENDPOINT", shared, below);
}

function endpoint(variable: string, address: string, urlOf: (address: string) => string): Endpoint {
  const usable = /^https?:\/\//.test(address) && URL.canParse(address);
  return usable ? { url: urlOf(address) } : { unusable: variable };
}

function below(address: string): string {
  return `${address.replace(/\/+$/, "")}/${PATH}`;
}
