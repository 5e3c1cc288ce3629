/** Databases, ready-made software, bots, games, jobs, monorepos. */
import type { Expected } from "./types.ts";

export const SERVICES: Record<string, Expected> = {
  "postgres-app.toml": {
    means: {
      app: {
        services: [
          { protocol: "tcp", internal_port: 5432, ports: [{ port: 5432, handlers: ["pg_tls"] }], autostart: false },
          { protocol: "tcp", internal_port: 5433, ports: [{ port: 5433, handlers: ["pg_tls"] }], autostart: false },
        ],
        checks: { pg: { port: 5500 }, role: { path: "/flycheck/role" }, vm: { interval: "15s", timeout: "10s" } },
        stop_config: { signal: "SIGINT", timeout: 300 },
        mounts: [{ volume: "pg_data", path: "/data" }],
      },
    },
    warns: ["metrics"],
  },
  "postgres-no-source.toml": {
    means: {
      app: {
        image: "postgres:14",
        checks: { pg: { type: "tcp", port: 5432 } },
        mounts: [{ volume: "data", path: "/data" }],
      },
    },
    warns: ["mounts", "metrics"],
  },
  "postgres-autostop.toml": {
    means: {
      app: {
        services: [{ internal_port: 5432, ports: [{ port: 5432, handlers: ["pg_tls"] }], autostop: "stop" }],
        mounts: [{ volume: "pg_data", path: "/data", size_gb: 10 }],
      },
    },
    warns: [],
  },
  "redis.toml": {
    means: { app: { image: "redis:7-alpine", mounts: [{ volume: "redis_server", path: "/data" }] } },
    warns: ["metrics"],
  },
  "mysql.toml": {
    means: {
      app: {
        guest: { cpus: 1, memory_mb: 2048 },
        init: {
          cmd: [
            ...["--datadir", "/data/mysql", "--mysql-native-password", "ON"],
            ...["--performance-schema=OFF", "--innodb-buffer-pool-size", "64M"],
          ],
        },
      },
    },
    warns: [],
  },
  "meilisearch.toml": {
    means: {
      app: {
        env: { MEILI_NO_ANALYTICS: "true" },
        checks: { alive: { type: "http", port: 7700, path: "/health", method: "GET", grace_period: "20s" } },
        mounts: [{ volume: "data", path: "/meili_data", size_gb: 5 }],
      },
    },
    warns: [],
  },
  "minio-two-services.toml": {
    means: {
      app: {
        init: { cmd: ["server", "/data", "--console-address", ":9001"] },
        services: [{ internal_port: 9000 }, { internal_port: 9001 }],
      },
    },
    warns: ["services[0]", "services[0].ports[0]"],
  },
  "n8n.toml": {
    means: {
      app: {
        guest: { memory_mb: 1024 },
        services: [{ autostop: "off", min_machines_running: 1 }],
        checks: { "http-8080": { path: "/healthz" } },
      },
    },
    warns: ["vm[0].cpu_kind"],
  },
  "uptime-kuma.toml": {
    means: { app: { services: [{ internal_port: 3001, autostop: "off" }], mounts: [{ volume: "kuma" }] } },
    warns: [],
  },
  "vaultwarden.toml": {
    means: { app: { env: { ROCKET_PORT: "8080" }, services: [{ internal_port: 8080 }, { internal_port: 3012 }] } },
    warns: ["services[1]", "services[1].ports[0]"],
  },
  "ghost.toml": {
    means: {
      app: {
        guest: { cpus: 1, memory_mb: 512 },
        env: { url: "https://news.example.com", database__client: "sqlite3" },
        services: [{ internal_port: 2368, autostop: "stop" }],
      },
    },
    warns: [],
  },
  "telegram-bot.toml": {
    means: { bot: { guest: { memory_mb: 256 }, init: { cmd: ["python", "-m", "reminder_bot"] } } },
    warns: [],
  },
  "discord-bot.toml": {
    means: {
      worker: {
        guest: { cpus: 1, memory_mb: 256 },
        init: { cmd: ["node", "dist/index.js"] },
        restart: { policy: "always", max_retries: 5 },
        stop_config: { signal: "SIGTERM", timeout: 10 },
      },
    },
    warns: ["vm[0].cpu_kind"],
  },
  "slack-bot-webhook.toml": {
    means: {
      app: {
        services: [{ autostop: "suspend", idle_timeout: 60 }],
        restart: { policy: "on-failure", max_retries: 3 },
      },
    },
    warns: [],
  },
  "cron-supercronic.toml": {
    means: {
      cron: { guest: { cpus: 2, memory_mb: 512 }, init: { cmd: ["supercronic", "/app/crontab"] } },
      web: { guest: { cpus: 1, memory_mb: 256 }, services: [{ internal_port: 8080 }] },
    },
    warns: [],
  },
  "scheduled-job.toml": {
    means: { app: { init: { exec: ["/bin/sh", "-c", "run-report && sleep 30"] }, restart: { policy: "no" } } },
    warns: [],
  },
  "scheduled-groups.toml": {
    means: {
      web: {
        services: [{ protocol: "http", internal_port: 8080, autostop: "suspend" }],
        init: { cmd: ["bin/server"] },
      },
      report: { init: { cmd: ["bin/report"] }, schedule: "0 3 * * mon-fri", schedule_timezone: "Europe/Berlin" },
      tidy: { init: { cmd: ["bin/tidy"] }, schedule: "hourly" },
    },
    warns: [],
  },
  "minecraft.toml": {
    means: {
      app: {
        guest: { cpus: 2, memory_mb: 4096 },
        env: { MEMORY: "" },
        services: [
          {
            protocol: "tcp",
            internal_port: 25_565,
            ports: [{ port: 25_565, handlers: ["proxy_proto"], proxy_proto_options: { version: "v2" } }],
            autostop: "suspend",
          },
        ],
        stop_config: { signal: "SIGINT", timeout: 120 },
        mounts: [{ volume: "world", path: "/data", size_gb: 10 }],
      },
    },
    warns: ["services[1]"],
  },
  "valheim.toml": {
    means: { app: { guest: { cpus: 4, memory_mb: 8192 }, env: { SERVER_PORT: "2456" } } },
    warns: ["services[0]", "vm[0].cpu_kind"],
  },
  "websocket-game.toml": {
    means: {
      app: {
        services: [
          { min_machines_running: 3, concurrency: { type: "connections", soft_limit: 900, hard_limit: 1200 } },
        ],
      },
    },
    warns: ["http_service.ports"],
  },
  "irc-bouncer.toml": {
    means: {
      app: {
        services: [
          { protocol: "http", internal_port: 6502 },
          { protocol: "tcp", internal_port: 6501, ports: [{ port: 6697, handlers: ["tls"] }] },
        ],
      },
    },
    warns: [],
  },
  "wireguard-udp-only.toml": { means: { app: {} }, warns: ["services[0]"] },
  "smtp-relay.toml": {
    means: {
      app: {
        services: [{ protocol: "tcp", internal_port: 2525, ports: [{ port: 25 }, { port: 587, handlers: ["tls"] }] }],
        checks: { "tcp-2525": { timeout: "5s" } },
      },
    },
    warns: [],
  },
  "monorepo-web.toml": {
    means: { app: { services: [{ internal_port: 3000, autostop: "stop" }] } },
    warns: ["build.settings"],
  },
  "monorepo-api.toml": {
    means: { app: { env: { PRIMARY_REGION: "ewr" }, services: [{ internal_port: 4000, autostop: "off" }] } },
    release: {
      init: { cmd: ["pnpm", "--filter", "api", "db:migrate"] },
      guest: { cpus: 1, memory_mb: 4096 },
      env: { PRIMARY_REGION: "ewr" },
    },
    warns: [],
  },
  "monorepo-worker.toml": {
    means: {
      ingest: { guest: { memory_mb: 512 }, mounts: [{ volume: "scratch", path: "/scratch", size_gb: 3 }] },
      export: {
        init: { cmd: ["node", "dist/export.js", "--out", "/data/nightly export"] },
        mounts: [{ volume: "exports", path: "/data" }, { volume: "scratch" }],
      },
    },
    warns: [],
  },
  "multi-web-admin.toml": {
    means: {
      public: { services: [{ internal_port: 8080, autostop: "suspend" }], checks: { public_alive: { port: 8080 } } },
      admin: { services: [{ internal_port: 9090 }], checks: { admin_alive: { type: "tcp", port: 9090 } } },
    },
    warns: ["services[0].ports[0]"],
  },
  "flycast-private.toml": {
    means: { app: { services: [{ autostop: "suspend", concurrency: { type: "requests", hard_limit: 10 } }] } },
    warns: [],
  },
  "vm-gpu.toml": {
    means: { app: { image: "ollama/ollama", mounts: [{ volume: "models", path: "/root/.ollama", size_gb: 100 }] } },
    warns: ["vm.size"],
  },
};
