/** The many ways to write the same thing, old and new. */
import type { Expected } from "./types.ts";

const HEADERS = [
  { name: "Host", values: ["headers.example.org"] },
  { name: "X-Probe", values: ["1"] },
];
const requests = (soft_limit: number, hard_limit?: number) => ({
  type: "requests" as const,
  soft_limit,
  ...(hard_limit && { hard_limit }),
});

export const FORMS: Record<string, Expected> = {
  "suspend-with-swap.toml": {
    means: { app: { init: { swap_size_mb: 1024 }, services: [{ autostop: "suspend" }] } },
    warns: [],
  },
  "files.toml": {
    means: {
      app: {
        services: [{ internal_port: 8080 }],
        files: [
          { guest_path: "/etc/app/config.yml" },
          { guest_path: "/etc/app/token", secret_name: "TOKEN" },
          { guest_path: "/etc/app/motd", raw_value: "aGVsbG8K" },
        ],
      },
    },
    warns: [],
  },
  "v1-script-checks.toml": {
    means: {
      app: {
        services: [{ internal_port: 5000, concurrency: requests(10, 12) }],
        checks: { "http-5000": { interval: "10s", headers: [{ name: "X-Probe", values: ["fly"] }] } },
      },
    },
    warns: ["services[0].http_checks[0].restart_limit", "services[0].script_checks"],
  },
  "v1-headers-list.toml": {
    means: { app: { checks: { "http-5000": { interval: "60s", timeout: "500ms", headers: HEADERS } } } },
    warns: [],
  },
  "v1-stringly.toml": {
    means: {
      app: {
        services: [{ internal_port: 8080, concurrency: requests(12, 23) }],
        checks: { "tcp-8080": { interval: "10s", timeout: "2s" } },
        mounts: [{ volume: "data", path: "/data", size_gb: 2 }],
      },
    },
    warns: [],
  },
  "v1-experimental-metrics.toml": {
    means: { app: { services: [{ internal_port: 8080 }], stop_config: { timeout: 20 } } },
    warns: ["experimental.metrics_port", "experimental.metrics_path", "experimental.private_network"],
  },
  "v1-processes-list.toml": {
    means: {
      web: { init: { cmd: ["bin/web"] }, services: [{ internal_port: 8080 }] },
      jobs: { init: { cmd: ["bin/jobs", "--queue", "default"] } },
    },
    warns: [],
  },
  "v1-env-list.toml": { means: { app: { env: { ONE: "1", TWO: "2", THREE: "true" } } }, warns: [] },
  "dotted-keys.toml": {
    app: "dotted",
    means: {
      app: {
        image: "ghcr.io/example/dotted:1",
        guest: { cpus: 2, memory_mb: 512 },
        env: { LOG_LEVEL: "debug", "PATH.EXTRA": "/opt/bin" },
        services: [{ internal_port: 9000, autostop: "suspend", concurrency: requests(5) }],
        checks: { up: { type: "http", port: 9000, path: "/up" } },
      },
    },
    warns: [],
  },
  "inline-tables.toml": {
    means: {
      app: {
        image: "nginx:alpine",
        env: { A: "1", B: "two" },
        services: [{ internal_port: 80, concurrency: requests(3) }],
        checks: { "http-80": { path: "/", interval: "5s" } },
        mounts: [
          { volume: "a", path: "/a" },
          { volume: "b", path: "/b", size_gb: 2 },
        ],
      },
    },
    warns: [],
  },
  "services-inline-array.toml": {
    means: {
      app: { services: [{ protocol: "http", internal_port: 8080, force_https: true }], checks: { "tcp-8080": {} } },
    },
    warns: [],
  },
  "concurrency-array.toml": { means: { app: { services: [{ concurrency: requests(25, 30) }] } }, warns: [] },
  "concurrency-array-two.toml": {
    means: { app: { services: [{ concurrency: requests(25) }] } },
    warns: ["services[0].concurrency[1]"],
  },
  "concurrency-zero.toml": { means: { app: { services: [{ concurrency: { type: "connections" } }] } }, warns: [] },
  "odd-formatting.toml": {
    app: "odd",
    means: {
      app: {
        guest: { memory_mb: 512 },
        services: [{ internal_port: 8080, autostop: "suspend", concurrency: requests(5) }],
      },
    },
    warns: [],
  },
  "crlf.toml": {
    app: "windows",
    means: { app: { guest: { memory_mb: 512 }, services: [{ internal_port: 8080, force_https: true }] } },
    warns: [],
  },
  "bom.toml": {
    app: "marked",
    means: { app: { services: [{ internal_port: 8080 }] } },
    warns: ["http_service.internal_prot"],
  },
  "multiline-strings.toml": {
    app: "long-words",
    means: {
      app: {
        env: { GREETING: 'Hello,\n[not_a_table]\napp = "not this either"\n', RAW: "C:\\path\\", QUOTED: 'a "b" # c' },
        init: { cmd: ["node", "--enable-source-maps", "server.js"] },
      },
    },
    warns: ["http_service.unknwon"],
  },
  "comments-only-defaults.toml": { means: { app: {} }, warns: [] },
  "vm-table.toml": { means: { app: { guest: { cpus: 8, memory_mb: 2048 } } }, warns: [] },
  "vm-units.toml": {
    means: {
      a: { guest: { memory_mb: 1024 } },
      b: { guest: { memory_mb: 768 } },
      c: { guest: { memory_mb: 1024 } },
      d: { guest: { memory_mb: 2048 } },
      e: { guest: { memory_mb: 300, cpus: 3 } },
    },
    warns: [],
  },
  "vm-old-names.toml": { means: { app: { guest: { cpus: 2, memory_mb: 4096 } } }, warns: [] },
  "vm-gpu-kind.toml": {
    means: { app: { guest: { cpus: 8, memory_mb: 32_768 } } },
    warns: ["cpu_kind", "gpu_kind", "gpus", "host_dedication_id", "kernel_args", "persist_rootfs"].map(
      (key) => `vm[0].${key}`,
    ),
  },
  "vm-default-and-special.toml": {
    means: {
      web: { guest: { cpus: 4, memory_mb: 1024 }, services: [{ internal_port: 8080 }] },
      worker: { guest: { cpus: 1, memory_mb: 2048 } },
      mail: { guest: { cpus: 4, memory_mb: 1024 } },
    },
    warns: [],
  },
  "checks-top-level.toml": {
    means: {
      app: {
        checks: {
          http_alive: {
            method: "HEAD",
            headers: [
              { name: "Authorization", values: ["Basic Zm9v"] },
              { name: "Accept", values: ["text/plain"] },
            ],
          },
          tls: { type: "http", port: 8443 },
          port: { type: "tcp", port: 9000 },
        },
        stop_config: { timeout: 90 },
      },
    },
    warns: ["checks.tls.protocol", "checks.tls.tls_server_name", "checks.tls.tls_skip_verify"],
  },
  "checks-list.toml": { means: { app: { checks: { alive: { type: "tcp", port: 7000 } } } }, warns: ["checks[1]"] },
  "checks-two-http.toml": {
    means: { app: { checks: { "http-8080": { path: "/a" }, "http-8080-2": { path: "/b" } } } },
    warns: ["http_service.machine_checks"],
  },
  "restart-forms.toml": {
    means: {
      a: { restart: { policy: "no" } },
      b: { restart: { policy: "on-failure", max_retries: 4 } },
      c: { restart: { policy: "always" } },
    },
    warns: [],
  },
  "autostop-bools.toml": {
    means: {
      a: { services: [{ internal_port: 1111, autostop: "stop" }] },
      b: { services: [{ internal_port: 2222, autostop: "off", autostart: false }] },
    },
    warns: [],
  },
  "idle-timeout.toml": { means: { app: { services: [{ autostop: "suspend", idle_timeout: 91 }] } }, warns: [] },
  "pinned.toml": {
    means: {
      app: {
        services: [
          { internal_port: 8080, placement: "pinned", machine_hostnames: true, replay_from: ["router"] },
          { internal_port: 9090, machine_hostnames: true },
        ],
      },
    },
    warns: ["http_service.min_machines_running"],
  },
  "primary-region-env.toml": { means: { app: { env: { PRIMARY_REGION: "ams", OTHER: "x" } } }, warns: [] },
  "process-words.toml": {
    means: {
      a: { init: { cmd: ["sh", "-c", "bin/migrate && exec bin/server"] } },
      b: { init: { cmd: ["env", "FOO=a b", "prog", '--flag="x"', "back slash"] } },
      c: { init: { cmd: ["spaced", "out"] } },
      d: { init: { cmd: ["prog", ""] } },
    },
    warns: [],
  },
};
