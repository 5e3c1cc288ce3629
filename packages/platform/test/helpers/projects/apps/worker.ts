/** Waits for work in a queue, and keeps the names that it finds there. It listens nowhere, and knows nothing of its sleep. */
import { openRedis } from "./redis.ts";
import { openRows } from "./rows.ts";

const { REDIS_HOST = "", DB_HOST = "" } = process.env;
const redis = openRedis(REDIS_HOST);
const rows = await openRows(DB_HOST);

for (;;) {
  const job = await redis.ask("BRPOP", "queue", "0");
  const { id, name } = JSON.parse(job ?? "") as { id: string; name: string };
  await rows.add(name);
  await redis.ask("LPUSH", id, "done");
}
