/**
 * A web server with a cache and a database, behind another one. `POST /` keeps a name, `GET /` returns all of them, and how many
 * requests the cache has counted.
 */
import { createServer, type IncomingMessage } from "node:http";
import { text } from "node:stream/consumers";
import { openRedis } from "./redis.ts";
import { openRows } from "./rows.ts";

const { PORT, REDIS_HOST = "", DB_HOST = "" } = process.env;
const redis = openRedis(REDIS_HOST);
const rows = await openRows(DB_HOST);

async function answer(request: IncomingMessage) {
  const requests = Number(await redis.ask("INCR", "requests"));
  if (request.method === "POST") await rows.add(await text(request));
  return { requests, names: await rows.all() };
}

createServer((request, response) => {
  answer(request).then(
    (body) => response.end(JSON.stringify(body)),
    (error: unknown) => response.writeHead(500).end(String(error)),
  );
}).listen(Number(PORT));
