/**
 * Waits for work in a queue, and keeps the names that it finds there. Its port says only that it lives, and lets it be woken: so it
 * stays awake by a lease while it works.
 */
import { createServer, request } from "node:http";
import { openRedis } from "./redis.ts";
import { openRows } from "./rows.ts";

const LEASE = { ttl: 60, reason: "a job" };
const { PORT, REDIS_HOST = "", DB_HOST = "" } = process.env;
const redis = openRedis(REDIS_HOST);
const rows = await openRows(DB_HOST);

createServer((_request, response) => response.end("alive")).listen(Number(PORT));

for (;;) {
  const job = await redis.ask("BRPOP", "queue", "0");
  await keepAwake("PUT", JSON.stringify(LEASE));
  const { id, name } = JSON.parse(job ?? "") as { id: string; name: string };
  await rows.add(name);
  await redis.ask("LPUSH", id, "done");
  await keepAwake("DELETE");
}

/** Takes or ends the lease, at the platform's socket in each machine. */
async function keepAwake(method: "PUT" | "DELETE", body = ""): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const headers = { "content-type": "application/json" };
  request({ socketPath: "/.hibernaut/api", path: "/v1/keepalive", method, headers }, (response) => {
    response.resume().once("end", () => {
      if (response.statusCode === 200) resolve();
      else reject(new Error(`the lease was answered with ${response.statusCode}`));
    });
  })
    .once("error", reject)
    .end(body);
  return promise;
}
