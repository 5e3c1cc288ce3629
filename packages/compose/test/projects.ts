/**
 * Compose files as well-known self-hosted projects have them: their services, images, ports, mounts, dependencies and checks, as
 * their repositories said in 2025. In our own words, and shorter: what is the same for all, such as `TZ`, is left out.
 */
export const PROJECTS: Readonly<Record<string, string>> = {
  umami: `
services:
  umami:
    image: ghcr.io/umami-software/umami:postgresql-latest
    ports: ["3000:3000"]
    environment: {DATABASE_URL: "postgresql://umami:umami@db:5432/umami"}
    depends_on: {db: {condition: service_healthy}}
    restart: always
    healthcheck: {test: [CMD-SHELL, "curl http://localhost:3000/api/heartbeat"], interval: 5s}
  db:
    image: postgres:15-alpine
    volumes: ["umami-db-data:/var/lib/postgresql/data"]
    restart: always
    healthcheck: {test: [CMD-SHELL, "pg_isready -U $\${POSTGRES_USER}"], interval: 5s}
volumes: {umami-db-data: }
`,
  listmonk: `
x-db: &db
  image: postgres:13-alpine
  ports: ["9432:5432"]
  networks: [listmonk]
  restart: unless-stopped
services:
  db: {<<: *db, container_name: listmonk_db, volumes: [{type: volume, source: listmonk-data, target: /var/lib/postgresql/data}]}
  app:
    image: listmonk/listmonk:latest
    hostname: listmonk.example.com
    ports: ["9000:9000"]
    networks: [listmonk]
    depends_on: [db]
    volumes: ["./config.toml:/listmonk/config.toml"]
networks: {listmonk: }
volumes: {listmonk-data: }
`,
  plausible: `
services:
  plausible_db: {image: "postgres:16-alpine", volumes: ["db-data:/var/lib/postgresql/data"], healthcheck: {test: [CMD-SHELL, "pg_isready -U postgres"], start_period: 1m}}
  plausible_events_db:
    image: clickhouse/clickhouse-server:24.3-alpine
    volumes: ["event-data:/var/lib/clickhouse", "./clickhouse/logs.xml:/etc/clickhouse-server/config.d/logs.xml:ro"]
    ulimits: {nofile: {soft: 262144, hard: 262144}}
    healthcheck: {test: [CMD-SHELL, "wget --no-verbose --tries=1 -O - http://127.0.0.1:8123/ping || exit 1"]}
  plausible:
    image: ghcr.io/plausible/community-edition:v2
    command: sh -c "/entrypoint.sh db createdb && /entrypoint.sh run"
    depends_on: {plausible_db: {condition: service_healthy}, plausible_events_db: {condition: service_healthy}}
    ports: ["8000:8000"]
    environment: [BASE_URL=http://localhost:8000, HTTP_PORT]
volumes: {db-data: , event-data: }
`,
  immich: `
name: immich
services:
  immich-server:
    container_name: immich_server
    image: ghcr.io/immich-app/immich-server:\${IMMICH_VERSION:-release}
    volumes: ["\${UPLOAD_LOCATION:-./library}:/data", "/etc/localtime:/etc/localtime:ro"]
    ports: ["2283:2283"]
    depends_on: [redis, database]
    healthcheck: {disable: false}
  immich-machine-learning: {image: "ghcr.io/immich-app/immich-machine-learning:release", volumes: ["model-cache:/cache"]}
  redis: {container_name: immich_redis, image: "docker.io/valkey/valkey:8-bookworm", healthcheck: {test: "redis-cli ping || exit 1"}}
  database: {container_name: immich_postgres, image: "ghcr.io/immich-app/postgres:14-vectorchord", shm_size: 128mb, volumes: ["./postgres:/var/lib/postgresql/data"]}
volumes: {model-cache: }
`,
  "paperless-ngx": `
services:
  broker: {image: "docker.io/library/redis:8", restart: unless-stopped, volumes: ["redisdata:/data"]}
  db: {image: "docker.io/library/postgres:18", restart: unless-stopped, volumes: ["pgdata:/var/lib/postgresql"]}
  webserver:
    image: ghcr.io/paperless-ngx/paperless-ngx:latest
    depends_on: [db, broker]
    ports: ["8000:8000"]
    volumes: ["data:/usr/src/paperless/data", "media:/usr/src/paperless/media", "./consume:/usr/src/paperless/consume"]
    environment: {PAPERLESS_REDIS: "redis://broker:6379", PAPERLESS_DBHOST: db}
volumes: {data: , media: , pgdata: , redisdata: }
`,
  mastodon: `
services:
  db: {image: "postgres:14-alpine", shm_size: 256mb, networks: [internal_network], healthcheck: {test: [CMD, pg_isready, -U, postgres]}, volumes: ["db:/var/lib/postgresql/data"]}
  redis: {image: "redis:7-alpine", networks: [internal_network], healthcheck: {test: [CMD, redis-cli, ping]}}
  web:
    image: ghcr.io/mastodon/mastodon:v4
    command: bundle exec puma -C config/puma.rb
    networks: [external_network, internal_network]
    healthcheck: {test: [CMD-SHELL, "curl -s --noproxy localhost localhost:3000/health | grep -q 'OK' || exit 1"]}
    ports: ["127.0.0.1:3000:3000"]
    depends_on: [db, redis]
  sidekiq: {image: "ghcr.io/mastodon/mastodon:v4", command: bundle exec sidekiq, depends_on: [db, redis], healthcheck: {test: [CMD-SHELL, "ps aux | grep '[s]idekiq'"]}}
networks: {external_network: , internal_network: {internal: true}}
volumes: {db: }
`,
  linkwarden: `
services:
  postgres: {image: "postgres:16-alpine", volumes: [{type: bind, source: ./pgdata, target: /var/lib/postgresql/data}]}
  linkwarden:
    image: ghcr.io/linkwarden/linkwarden:latest
    environment: ["DATABASE_URL=postgresql://postgres:\${POSTGRES_PASSWORD}@postgres:5432/postgres"]
    ports: ["3000:3000"]
    depends_on: [postgres, meilisearch]
  meilisearch: {image: "getmeili/meilisearch:v1.12.8", volumes: ["meili:/meili_data"]}
volumes: {meili: }
`,
  outline: `
services:
  outline:
    image: outlinewiki/outline:latest
    env_file: [{path: .env, required: false}]
    ports: ["3000:3000"]
    depends_on: {postgres: {condition: service_healthy}, redis: {condition: service_healthy}}
    volumes: ["outline-data:/var/lib/outline/data"]
  redis: {image: redis, ports: ["127.0.0.1:6379:6379"], user: "redis:redis", healthcheck: {test: [CMD, redis-cli, ping], interval: 5s}}
  postgres: {image: postgres, ports: ["127.0.0.1:5432:5432"], user: "postgres:postgres", healthcheck: {test: [CMD-SHELL, "pg_isready -d outline"]}, volumes: ["postgres-data:/var/lib/postgresql/data"]}
volumes: {outline-data: , postgres-data: }
`,
  chatwoot: `
services:
  base: &base {image: "chatwoot/chatwoot:latest", volumes: ["storage_data:/app/storage"]}
  rails: {<<: *base, depends_on: [postgres, redis], ports: ["127.0.0.1:3000:3000"], entrypoint: docker/entrypoints/rails.sh, command: [bundle, exec, rails, s]}
  sidekiq: {<<: *base, depends_on: [postgres, redis], command: [bundle, exec, sidekiq]}
  postgres: {image: "pgvector/pgvector:pg16", volumes: ["postgres_data:/var/lib/postgresql/data"]}
  redis: {image: "redis:alpine", command: [sh, -c, 'redis-server --requirepass "$REDIS_PASSWORD"'], volumes: ["redis_data:/data"]}
volumes: {storage_data: , postgres_data: , redis_data: }
`,
  penpot: `
services:
  penpot-frontend: {image: "penpotapp/frontend:latest", ports: ["9001:80"], volumes: ["penpot_assets:/opt/data/assets"], depends_on: [penpot-backend, penpot-exporter], labels: [traefik.enable=true]}
  penpot-backend: {image: "penpotapp/backend:latest", depends_on: [penpot-postgres, penpot-redis], environment: ["PENPOT_REDIS_URI=redis://penpot-redis/0"]}
  penpot-exporter: {image: "penpotapp/exporter:latest"}
  penpot-postgres: {image: "postgres:15", stop_signal: SIGINT, volumes: ["penpot_postgres_v15:/var/lib/postgresql/data"]}
  penpot-redis: {image: "redis:7"}
  penpot-mailcatch: {image: "sj26/mailcatcher:latest", expose: ["1025"], ports: ["1080:1080"]}
volumes: {penpot_assets: , penpot_postgres_v15: }
`,
  gitea: `
services:
  server:
    image: docker.gitea.com/gitea:1.24
    environment: [USER_UID=1000, "GITEA__database__HOST=db:5432"]
    restart: always
    volumes: ["gitea:/data", "/etc/localtime:/etc/localtime:ro"]
    ports: ["3000:3000", "222:22"]
    depends_on: [db]
  db: {image: "docker.io/library/postgres:14", restart: always, volumes: ["postgres:/var/lib/postgresql/data"]}
networks: {gitea: {external: false}}
volumes: {gitea: {driver: local}, postgres: }
`,
  nextcloud: `
services:
  db: {image: "mariadb:lts", restart: always, command: --transaction-isolation=READ-COMMITTED, volumes: ["db:/var/lib/mysql"]}
  redis: {image: "redis:alpine", restart: always}
  app: {image: nextcloud, restart: always, ports: ["8080:80"], depends_on: [redis, db], volumes: ["nextcloud:/var/www/html"], environment: [MYSQL_HOST=db, REDIS_HOST=redis]}
  cron: {image: nextcloud, restart: always, volumes: ["nextcloud:/var/www/html"], entrypoint: /cron.sh, depends_on: [db, redis]}
volumes: {db: , nextcloud: }
`,
};
