/**
 * A web server that leaves its work to a worker. `POST /` puts a name into the queue and answers once the worker has kept it,
 * `GET /` returns all names.
 */
import { randomUUID } from "node:crypto";
import { createServer } from "node:http";
import { text } from "node:stream/consumers";
import { openRedis } from "./redis.ts";
import { openRows } from "./rows.ts";

/** How long the worker may take, in seconds. */
const WORK_S = "60";
const { PORT, REDIS_HOST = "", DB_HOST = "" } = process.env;
const redis = openRedis(REDIS_HOST);
const rows = await openRows(DB_HOST);

createServer(async (request, response) => {
  if (request.method === "POST") {
    const id = randomUUID();
    await redis.ask("LPUSH", "queue", JSON.stringify({ id, name: await text(request) }));
    const done = await redis.ask("BRPOP", id, WORK_S);
    response.statusCode = done === "done" ? 200 : 500;
  }
  response.end(JSON.stringify({ names: request.url === "/health" ? [] : await rows.all() }));
}).listen(Number(PORT));
