/**
 * A web server that leaves its work to a worker. `POST /` puts a name into the queue and answers once the worker has kept it,
 * `GET /` returns all names.
 */
import { randomUUID } from "node:crypto";
import { createServer, type IncomingMessage } from "node:http";
import { text } from "node:stream/consumers";
import { openRedis } from "./redis.ts";
import { openRows } from "./rows.ts";

/** How long the worker may take, in seconds. */
const WORK_S = "60";
const { PORT, REDIS_HOST = "", DB_HOST = "" } = process.env;
const redis = openRedis(REDIS_HOST);
const rows = await openRows(DB_HOST);

async function work(name: string): Promise<void> {
  const id = randomUUID();
  await redis.ask("LPUSH", "queue", JSON.stringify({ id, name }));
  if ((await redis.ask("BRPOP", id, WORK_S)) !== "done") throw new Error("The worker did not do its work in time.");
}

async function answer(request: IncomingMessage) {
  if (request.url === "/health") return {};
  if (request.method === "POST") await work(await text(request));
  return { names: await rows.all() };
}

createServer((request, response) => {
  answer(request).then(
    (body) => response.end(JSON.stringify(body)),
    (error: unknown) => response.writeHead(500).end(String(error)),
  );
}).listen(Number(PORT));
