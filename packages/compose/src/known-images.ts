/**
 * What is known of images that many projects use: an image says where it listens only once it is here, and a plan comes before
 * that. Facts of their own documents. Pure data.
 */

import { own } from "./values.ts";

interface KnownImage {
  /** Where it listens. The first is the one that clients use. */
  ports: readonly number[];
  /** What it needs to start, in MB, if that is more than a machine has by default. */
  memoryMb?: number;
}

/** By the last part of the reference, without tag. */
const KNOWN: Readonly<Record<string, KnownImage>> = {
  postgres: { ports: [5432] },
  postgis: { ports: [5432] },
  timescaledb: { ports: [5432], memoryMb: 512 },
  pgvector: { ports: [5432] },
  redis: { ports: [6379] },
  valkey: { ports: [6379] },
  memcached: { ports: [11211] },
  mysql: { ports: [3306], memoryMb: 768 },
  mariadb: { ports: [3306], memoryMb: 384 },
  mongo: { ports: [27017], memoryMb: 512 },
  rabbitmq: { ports: [5672], memoryMb: 512 },
  nats: { ports: [4222] },
  elasticsearch: { ports: [9200], memoryMb: 2048 },
  opensearch: { ports: [9200], memoryMb: 2048 },
  meilisearch: { ports: [7700] },
  typesense: { ports: [8108] },
  "clickhouse-server": { ports: [8123, 9000], memoryMb: 1024 },
  clickhouse: { ports: [8123, 9000], memoryMb: 1024 },
  minio: { ports: [9000] },
  mailpit: { ports: [8025, 1025] },
  nginx: { ports: [80] },
  httpd: { ports: [80] },
  caddy: { ports: [80] },
  haproxy: { ports: [] },
  wordpress: { ports: [80], memoryMb: 512 },
};

/** Ports at which another protocol than HTTP is spoken. */
const NOT_HTTP: ReadonlySet<number> = new Set([
  ...[
    21, 22, 23, 25, 53, 110, 143, 389, 465, 587, 636, 993, 995, 1025, 1433, 1521, 1883, 2222, 3306, 4222, 5432, 5433,
    5672,
  ],
  ...[6379, 6380, 8883, 9042, 9092, 11211, 25565, 27017, 50051],
]);

/** Returns what is known of an image, by its reference. */
export function knownImage(reference: string): KnownImage | undefined {
  const last = reference.split("/").at(-1) ?? "";
  const name = last.split(/[:@]/, 1)[0] ?? "";
  return own(KNOWN, name);
}

/** Whether a port is most likely one for HTTP. */
export function speaksHttp(port: number): boolean {
  return !NOT_HTTP.has(port);
}
