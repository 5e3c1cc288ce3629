/** Web apps by framework. */
import type { Expected } from "./types.ts";

const ROLLBACK = "experimental.auto_rollback";
const KIND = "vm[0].cpu_kind";

const sleeping = (internal_port: number) => [
  { protocol: "http" as const, internal_port, autostop: "suspend" as const },
];
const stopping = (internal_port: number) => [{ protocol: "http" as const, internal_port, autostop: "stop" as const }];
const open = (internal_port: number) => [{ protocol: "http" as const, internal_port }];

export const WEB: Record<string, Expected> = {
  "phoenix-2024.toml": {
    app: "ledger-web",
    means: {
      app: {
        guest: { cpus: 1, memory_mb: 1024 },
        env: { PHX_HOST: "ledger.example.org", PORT: "4000", PRIMARY_REGION: "arn" },
        services: [
          {
            protocol: "http",
            internal_port: 4000,
            autostop: "stop",
            autostart: true,
            min_machines_running: 0,
            concurrency: { type: "connections", soft_limit: 1000, hard_limit: 1000 },
          },
        ],
        stop_config: { signal: "SIGTERM" },
      },
    },
    warns: [KIND],
  },
  "phoenix-2022.toml": {
    means: {
      app: {
        services: [{ internal_port: 8080, concurrency: { type: "connections", soft_limit: 20, hard_limit: 25 } }],
        checks: { "tcp-8080": { type: "tcp", port: 8080, interval: "15s", timeout: "2s", grace_period: "1s" } },
        stop_config: { signal: "SIGTERM", timeout: 5 },
      },
    },
    warns: [ROLLBACK],
  },
  "phoenix-cluster.toml": {
    means: {
      app: {
        guest: { cpus: 2, memory_mb: 512 },
        env: { ECTO_IPV6: "true", POOL_SIZE: "10", DNS_CLUSTER_QUERY: "nodes.internal" },
        init: { swap_size_mb: 512 },
        services: [{ autostop: "off", min_machines_running: 2, concurrency: { type: "connections", soft_limit: 500 } }],
        checks: {
          "http-8080": { type: "http", interval: "20s", grace_period: "60s", method: "GET", path: "/healthz" },
        },
      },
    },
    warns: [],
  },
  "rails-kamal-like.toml": {
    means: {
      app: {
        guest: { memory_mb: 512 },
        init: { cmd: ["./bin/rails", "server"] },
        services: [{ internal_port: 3000, autostop: "suspend", min_machines_running: 1 }],
        checks: { "http-3000": { path: "/up", headers: [{ name: "X-Forwarded-Proto", values: ["https"] }] } },
      },
      sidekiq: { guest: { memory_mb: 1024 }, init: { cmd: ["bundle", "exec", "sidekiq", "-C", "config/sidekiq.yml"] } },
    },
    warns: ["console_command", "statics"],
  },
  "rails-2021.toml": {
    means: { app: { services: open(8080), checks: { "tcp-8080": { interval: "15s" } } } },
    warns: [
      "build.builder",
      ROLLBACK,
      "experimental.enable_consul",
      "services[0].tcp_checks[0].restart_limit",
      "statics",
    ],
  },
  "rails-sqlite.toml": {
    means: {
      app: {
        guest: { memory_mb: 512 },
        services: sleeping(80),
        mounts: [{ volume: "storage", path: "/rails/storage", size_gb: 1, snapshot_retention: 14 }],
      },
    },
    warns: ["mounts.auto_extend_size_threshold", "mounts.auto_extend_size_increment", "mounts.auto_extend_size_limit"],
  },
  "laravel.toml": {
    means: { app: { env: { LOG_STDERR_FORMATTER: "Monolog\\Formatter\\JsonFormatter" }, services: stopping(8080) } },
    warns: ["console_command", KIND],
  },
  "laravel-horizon.toml": {
    means: {
      app: { services: stopping(8080) },
      worker: { init: { cmd: ["php", "artisan", "horizon"] }, restart: { policy: "always", max_retries: 10 } },
      cron: { init: { cmd: ["cron", "-f"] }, restart: { policy: "always", max_retries: 10 } },
    },
    warns: [],
  },
  "django.toml": {
    means: { app: { env: { PORT: "8000" }, services: stopping(8000) } },
    warns: ["console_command", "statics"],
  },
  "django-celery.toml": {
    means: {
      web: {
        env: { WEB_CONCURRENCY: "2" },
        services: [{ internal_port: 8000, autostop: "stop", min_machines_running: 1 }],
        checks: { "http-8000": { interval: "10s", timeout: "2s", grace_period: "30s", path: "/health/" } },
        stop_config: { timeout: 90 },
      },
      worker: { init: { cmd: ["celery", "-A", "gazette", "worker", "-l", "info", "--concurrency=2"] } },
      beat: {
        init: { cmd: ["celery", "-A", "gazette", "beat", "--schedule", "/data/beat schedule"] },
        mounts: [{ volume: "beat", path: "/data" }],
      },
    },
    warns: [],
  },
  "nextjs.toml": {
    means: { app: { guest: { cpus: 1, memory_mb: 512 }, services: stopping(3000) } },
    warns: ["vm[0].memory", KIND],
  },
  "nextjs-build-args.toml": {
    means: { app: { env: { NEXT_TELEMETRY_DISABLED: "1" }, services: sleeping(3000) } },
    warns: [],
  },
  "remix-litefs.toml": {
    means: {
      app: {
        services: [{ internal_port: 8080, concurrency: { type: "requests", soft_limit: 80, hard_limit: 100 } }],
        checks: {
          "tcp-8080": { type: "tcp" },
          "http-8080": { path: "/resources/healthcheck" },
          "http-8080-2": { path: "/litefs/health", interval: "30s" },
        },
        mounts: [{ volume: "data", path: "/data" }],
      },
    },
    warns: [ROLLBACK, "experimental.enable_consul"],
  },
  "go-api.toml": {
    means: {
      app: {
        image: "ghcr.io/example/quotes-api:v1.4.2",
        services: [{ autostop: "suspend", concurrency: { type: "requests", soft_limit: 200, hard_limit: 250 } }],
      },
    },
    warns: [],
  },
  "go-builder.toml": {
    means: {
      app: {
        services: [{ internal_port: 8080, concurrency: { type: "connections" } }],
        checks: { "tcp-8080": { interval: "10s", timeout: "2s" } },
      },
    },
    warns: ["build.builder", "build.buildpacks"],
  },
  "go-grpc.toml": {
    means: { app: { services: [{ protocol: "tcp", internal_port: 50_051 }], checks: { "tcp-50051": {} } } },
    warns: ["services[0].ports[0]", "services[0].ports[0].tls_options"],
  },
  "rust-axum.toml": {
    means: {
      app: {
        guest: { cpus: 1, memory_mb: 256 },
        services: sleeping(3000),
        checks: { "http-3000": { path: "/" } },
        stop_config: { signal: "SIGINT", timeout: 5 },
      },
    },
    warns: [],
  },
  "deno-fresh.toml": {
    means: { app: { services: open(8000), checks: { "tcp-8000": { grace_period: "1s" } } } },
    warns: [],
  },
  "bun-elysia.toml": {
    means: {
      app: {
        guest: { memory_mb: 256 },
        services: [{ concurrency: { type: "requests", soft_limit: 150, hard_limit: 200 } }],
      },
    },
    warns: [],
  },
  "static-caddy.toml": {
    means: { app: { guest: { cpus: 1, memory_mb: 256 }, services: open(80) } },
    warns: [],
  },
  "static-nginx-statics.toml": { means: { app: { services: open(80) } }, warns: ["statics"] },
  "hugo.toml": {
    means: { app: { guest: { cpus: 1, memory_mb: 256 }, services: [{ autostop: "off", min_machines_running: 1 }] } },
    warns: [KIND],
  },
  "flask.toml": { means: { app: { services: stopping(8080) } }, warns: ["build.builder"] },
  "fastapi.toml": {
    means: {
      api: {
        guest: { cpus: 2, memory_mb: 8192 },
        init: { cmd: ["uvicorn", "predictor.main:app", "--host", "0.0.0.0", "--port", "8000"] },
        services: sleeping(8000),
      },
    },
    warns: [],
  },
  "streamlit.toml": {
    means: {
      app: {
        env: { STREAMLIT_SERVER_PORT: "8501", STREAMLIT_SERVER_ENABLE_CORS: "false" },
        services: [{ idle_timeout: 900, concurrency: { type: "connections", soft_limit: 50 } }],
      },
    },
    warns: [],
  },
  "dotnet.toml": {
    means: {
      app: {
        env: { "Logging.Level": "Warning" },
        services: stopping(8080).map((service) => ({ ...service, http_options: { h2_backend: true } })),
        stop_config: { timeout: 30 },
      },
    },
    warns: ["http_service.http_options.idle_timeout", "http_service.tls_options"],
  },
  "spring-boot.toml": {
    means: {
      app: {
        guest: { cpus: 2, memory_mb: 2048 },
        checks: { "http-8080": { grace_period: "90s", path: "/actuator/health" } },
      },
    },
    warns: [],
  },
  "vapor-swift.toml": { means: { app: { guest: { memory_mb: 256 }, services: stopping(8080) } }, warns: [] },
  "crystal-lucky.toml": {
    means: {
      app: {
        init: { entrypoint: ["/usr/bin/tini"], cmd: ["start_server"] },
        services: [{ internal_port: 5000, concurrency: { type: "requests", soft_limit: 20, hard_limit: 25 } }],
        stop_config: { signal: "SIGTERM", timeout: 60 },
      },
    },
    warns: [],
  },
};
