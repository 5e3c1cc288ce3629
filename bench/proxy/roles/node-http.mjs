/** What you would write first: no checks, no retries, no log. */
import { Agent, request as ask, createServer } from "node:http";
import { APP_PORT, HOST, listen, MOST_CONNECTIONS } from "./lib.mjs";

const agent = new Agent({ keepAlive: true, maxSockets: MOST_CONNECTIONS });
await listen(
  createServer((request, response) => {
    const { method = "GET", url = "/", headers } = request;
    const onward = ask({ host: HOST, port: APP_PORT, method, path: url, headers, agent }, (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(response);
    });
    onward.on("error", () => response.destroy());
    request.pipe(onward);
  }),
);
