/** The fastest HTTP client for Node, through its lowest-level interface, behind Node's server. */
import { createServer } from "node:http";
import { Pool } from "undici";
import { APP_PORT, HOST, listen, MOST_CONNECTIONS } from "./lib.mjs";

const pool = new Pool(`http://${HOST}:${APP_PORT}`, { connections: MOST_CONNECTIONS, pipelining: 1 });
/** Headers that are for one hop only. */
const DROPPED = new Set(["connection", "keep-alive", "transfer-encoding"]);

await listen(
  createServer((request, response) => {
    const { method = "GET", url = "/", headers } = request;
    delete headers.connection;
    const bodiless = headers["content-length"] === undefined && headers["transfer-encoding"] === undefined;
    pool.dispatch(
      { path: url, method, headers, body: bodiless ? null : request },
      {
        onRequestStart() {},
        onResponseStart(_controller, status, answered) {
          for (const [name, value] of Object.entries(answered))
            if (!DROPPED.has(name) && value !== undefined) response.setHeader(name, value);
          response.writeHead(status);
        },
        onResponseData: (_controller, chunk) => void response.write(chunk),
        onResponseEnd: () => void response.end(),
        onResponseError: () => void response.destroy(),
      },
    );
  }),
);
