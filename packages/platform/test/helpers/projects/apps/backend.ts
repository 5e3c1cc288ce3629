/**
 * A web server with a cache and a database, behind another one. `POST /` keeps a name, `GET /` returns all of them, and how many
 * requests the cache has counted.
 */
import { createServer } from "node:http";
import { text } from "node:stream/consumers";
import { openRedis } from "./redis.ts";
import { openRows } from "./rows.ts";

const { PORT, REDIS_HOST = "", DB_HOST = "" } = process.env;
const redis = openRedis(REDIS_HOST);
const rows = await openRows(DB_HOST);

createServer(async (request, response) => {
  const requests = Number(await redis.ask("INCR", "requests"));
  if (request.method === "POST") await rows.add(await text(request));
  response.end(JSON.stringify({ requests, names: await rows.all() }));
}).listen(Number(PORT));
