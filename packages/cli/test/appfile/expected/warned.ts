/** Files whose point is what has no effect. */
import type { Expected } from "./types.ts";

const port = (internal_port: number) => ({ app: { services: [{ internal_port }] } });

export const WARNED: Record<string, Expected> = {
  "metrics-per-process.toml": { means: { web: {}, worker: {} }, warns: ["metrics"] },
  "http-options.toml": {
    means: {
      app: {
        services: [
          {
            http_options: {
              response: {
                headers: { Server: false, "X-Robots-Tag": "noindex", Link: ["</a.css>", "</b.js>"] },
              },
            },
          },
        ],
      },
    },
    warns: ["http_service.http_options.compress", "http_service.http_options.response.pristine"],
  },
  "ports-options.toml": {
    means: {
      app: { services: [{ http_options: { response: { headers: { "X-Frame-Options": "DENY" } } } }] },
    },
    warns: ["services[0].ports[1].tls_options"],
  },
  "canary.toml": { means: port(8080), warns: ["deploy.seed_command"] },
  "no-internal-port.toml": { means: { app: { services: [{ internal_port: 8080, autostop: "stop" }] } }, warns: [] },
  "service-without-ports.toml": {
    means: { app: { services: [{ protocol: "tcp", internal_port: 9999, autostop: "off" }] } },
    warns: ["services[0]", "services[0].auto_stop_machines"],
  },
  "stray-ports.toml": { means: port(8090), warns: ["services"] },
  "misplaced.toml": {
    means: port(8080),
    warns: [
      "min_machines_running",
      "internal_port",
      "build.kill_timeout",
      "build.release_command",
      "machines",
      "http_service.memory",
    ],
  },
  "typos.toml": {
    means: { app: { services: [{ internal_port: 8080 }], mounts: [{ volume: "data", path: "/data" }] } },
    warns: [
      "ap",
      "primary-region",
      "http_service.auto_stop_machine",
      "http_service.Force_HTTPS",
      "http_service.concurency",
      "mount[0]",
      "mount[0].src",
      "vms",
    ],
  },
  "invented-sections.toml": {
    means: { app: {} },
    warns: ["scaling", "regions", "healthcheck", "secrets", "logging"],
  },
  "services-empty.toml": { app: "hollow", means: { app: {} }, warns: [] },
  "machine-config.toml": {
    means: { app: {} },
    warns: [
      "machine_config",
      "container",
      "host_dedication_id",
      "experimental.lazy_load_images",
      "experimental.machine_config",
      "experimental.attached",
    ],
  },
  "quic-same-port.toml": {
    means: { app: { services: [{ internal_port: 8080 }, { internal_port: 8080 }] } },
    warns: ["services[0].ports[0]"],
  },
};
