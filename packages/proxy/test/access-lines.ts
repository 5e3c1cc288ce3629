/** Writes lines of the access log as a proxy does: a program of its own, as they go to its stderr. */
import { openAccessLog } from "../src/access-log.ts";

const log = openAccessLog("info");
for (let number = 0; number < Number(process.argv[2]); number += 1)
  log.write({
    ...{ time: Date.now(), requestId: `r-${number}`, method: "GET", host: "shop.test", target: `/caf\u00e9/${number}` },
    ...{ httpVersion: "1.1", clientAddress: "127.0.0.1", status: 200, bytesIn: 0, bytesOut: 100, durationMs: 1 },
    ...{ wake: undefined, machineId: "m1", appName: "shop", error: undefined },
  });
log.close();
