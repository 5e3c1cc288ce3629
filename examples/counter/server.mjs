// A web app that keeps all its state in memory. It draws the nonce once, when the process starts, and increments the
// count with every request. A resume keeps both; a cold start resets both.
import { randomUUID } from "node:crypto";
import { createServer } from "node:http";

const nonce = randomUUID();
const port = Number(process.env.PORT ?? 8080);
let count = 0;

const server = createServer((request, response) => {
  // `?peek` reads without counting, for health checks and tests.
  if (!request.url?.includes("peek")) count += 1;
  response.setHeader("content-type", "application/json");
  response.end(
    `${JSON.stringify({
      nonce,
      count,
      pid: process.pid,
      uptime_ms: Math.round(process.uptime() * 1000),
      now: new Date().toISOString(),
    })}\n`,
  );
});

server.listen(port, () => console.log(`counter listens on port ${port}`));
process.once("SIGTERM", () => server.close(() => process.exit(0)));
