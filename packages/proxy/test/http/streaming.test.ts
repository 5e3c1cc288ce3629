/** Messages in all their forms, through the proxy and back. */
import { createHash } from "node:crypto";
import { once } from "node:events";
import { Agent, request as httpRequest, type IncomingMessage } from "node:http";
import { setImmediate } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import { CLOSE, headApp, httpApp, KEEP, parsed, rig, until } from "./helpers.ts";

/** An app that gives back what it gets, length unknown. */
const echo = () => httpApp((request, response) => void request.pipe(response));

describe("bodies", () => {
  test("with a length are forwarded both ways", async () => {
    const app = await httpApp((request, response) => {
      let text = `${request.headers["content-length"]} ${request.headers["transfer-encoding"]} `;
      request.on("data", (chunk) => (text += chunk)).on("end", () => response.end(text));
    });
    const { ask, log } = await rig({ app });
    const reply = parsed(await ask(`POST /a HTTP/1.1\r\nContent-Length: 5\r\n${CLOSE}hello`));
    expect(reply).toMatchObject({ status: 200, body: "5 undefined hello" });
    expect(reply.headers.get("content-length")).toBe("17");
    expect(log).toMatchObject([{ method: "POST", target: "/a", bytesIn: 5, bytesOut: 17, status: 200 }]);
  });

  test("of length 0 keep their length, and the app's connection", async () => {
    const app = await httpApp((request, response) => response.end(`${request.headers["content-length"]}`));
    const { ask } = await rig({ app });
    for (let count = 0; count < 2; count += 1)
      expect(parsed(await ask(`POST / HTTP/1.1\r\nContent-Length: 0\r\n${CLOSE}`)).body).toBe("0");
    expect(app.accepted).toBe(1);
  });

  test("in chunks are forwarded both ways, with trailers", async () => {
    const app = await httpApp((request, response) => {
      response.setHeader("Trailer", "X-Sum");
      request.on("data", (chunk) => response.write(chunk));
      request.on("end", () => {
        response.addTrailers({ "X-Sum": JSON.stringify(request.trailers) });
        response.end();
      });
    });
    const { ask } = await rig({ app });
    const body = "3;ext=1\r\nabc\r\n4\r\ndefg\r\n0\r\nX-Md5: 1\r\nHost: evil\r\nX-Forwarded-For: evil\r\n\r\n";
    const text = await ask(`POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\nTE: trailers\r\n${CLOSE}${body}`);
    const reply = parsed(text);
    expect(reply.headers.get("transfer-encoding")).toBe("chunked");
    expect(reply.body.replace(/^[0-9a-f]+\r\n|\r\n(?:[0-9a-f]+\r\n)?/g, "")).toMatch(/^abcdefg/);
    expect(reply.body).toMatch(/\r\n0\r\nX-Sum: \{"x-md5":"1"\}\r\n\r\n$/);
  });

  test("that end with the app's connection end in chunks for HTTP/1.1, with the connection for 1.0", async () => {
    const app = await headApp((socket) => socket.end("HTTP/1.1 200 OK\r\n\r\nall there is"));
    const { ask } = await rig({ app });
    expect(parsed(await ask(`GET / HTTP/1.1\r\n${CLOSE}`)).body).toBe("c\r\nall there is\r\n0\r\n\r\n");
    const old = parsed(await ask("GET / HTTP/1.0\r\nHost: a.test\r\nConnection: keep-alive\r\n\r\n"));
    expect(old.body).toBe("all there is");
    expect(old.headers.get("connection")).toBe("close");
  });

  test("of 200 MB are forwarded both ways in little memory", { timeout: 60_000 }, async () => {
    const SIZE = 200 * 1024 * 1024;
    const { port } = await rig({ app: await echo() });
    const piece = Buffer.alloc(1024 * 1024, "0123456789abcdef");
    const [sent, came] = [createHash("sha1"), createHash("sha1")];
    let most = 0;
    let bytes = 0;
    const request = httpRequest({ port, host: "127.0.0.1", method: "POST", agent: false });
    const answered = new Promise<IncomingMessage>((resolve, reject) => {
      request.on("response", resolve).on("error", reject);
    });
    const writing = (async () => {
      for (let at = 0; at < SIZE; at += piece.length) {
        sent.update(piece);
        if (!request.write(piece)) await new Promise((resolve) => request.once("drain", resolve));
      }
      request.end();
    })();
    for await (const chunk of await answered) {
      came.update(chunk as Buffer);
      bytes += (chunk as Buffer).length;
      most = Math.max(most, process.memoryUsage().arrayBuffers);
    }
    await writing;
    expect(bytes).toBe(SIZE);
    expect(came.digest("hex")).toBe(sent.digest("hex"));
    // Proxy, app and client share this process; garbage that waits to be collected is most of it. Who kept the
    // body would have it three times.
    expect(most).toBeLessThan(180 * 1024 * 1024);
  });

  test("of all sizes, one after the other on a connection, reach a client that reads them late", async () => {
    const sizes = [
      1, 4096, 7, 16_384, 16_385, 4097, 65_536, 300_000, 2_000_000, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 70_000, 1,
    ];
    let pattern = 0;
    const bodies = sizes.map((size) => Buffer.alloc(size).map((_zero, at) => (at >> 8) ^ at ^ (pattern += 7)));
    const [left, sent] = [[...bodies], createHash("sha1").update(Buffer.concat(bodies)).digest("hex")];
    const app = await httpApp((_request, response) => void response.end(left.shift()));
    const { port } = await rig({ app });
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    const came = createHash("sha1");
    for (const size of sizes) {
      const request = httpRequest({ port, host: "127.0.0.1", agent }).end();
      const [response] = (await once(request, "response")) as [IncomingMessage];
      // Nobody reads until the event loop has had time to fill the buffers on the way.
      for (let turns = 0; turns < 20; turns += 1) await setImmediate();
      let bytes = 0;
      for await (const chunk of response) {
        came.update(chunk as Buffer);
        bytes += (chunk as Buffer).length;
      }
      expect(bytes).toBe(size);
    }
    agent.destroy();
    expect(came.digest("hex")).toBe(sent);
    expect(app.accepted).toBe(1);
  });

  test("wait for a reader that does not read", async () => {
    let written = 0;
    const piece = Buffer.alloc(256 * 1024);
    const app = await httpApp((_request, response) => {
      const more = () => {
        while (written < 400) {
          written += 1;
          if (!response.write(piece)) return;
        }
        response.end();
      };
      response.on("drain", more);
      more();
    });
    const { client, proxy } = await rig({ app });
    const browser = await client();
    browser.socket.pause();
    browser.send(`GET / HTTP/1.1\r\n${KEEP}`);
    // The app stalls once the buffers on the way are full; the kernel's take some megabytes.
    for (let still = 0, before = 0; still < 200; ) {
      await setImmediate();
      still = written > 0 && written === before ? still + 1 : 0;
      before = written;
    }
    expect(written).toBeLessThan(100);
    expect(proxy.stats().requests).toBe(1);
    browser.socket.resume();
    await until(() => written >= 400, "the app to write all");
  });
});

describe("while both speak", () => {
  test("events arrive one by one", async () => {
    let say: (text: string) => void = () => {};
    const app = await httpApp((_request, response) => {
      response.writeHead(200, { "content-type": "text/event-stream" }).flushHeaders();
      say = (text) => void response.write(`data: ${text}\n\n`);
    });
    const { client } = await rig({ app });
    const browser = await client();
    await browser.send(`GET / HTTP/1.1\r\n${KEEP}`).sees("\r\n\r\n");
    for (const word of ["one", "two", "three"]) {
      say(word);
      await browser.sees(`data: ${word}\n\n`);
    }
  });

  test("a response may run ahead of its request", async () => {
    const { client } = await rig({ app: await echo() });
    const browser = await client();
    browser.send(`POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n${KEEP}3\r\nabc\r\n`);
    await browser.sees("3\r\nabc\r\n");
    browser.send("3\r\ndef\r\n");
    await browser.sees("3\r\ndef\r\n");
    browser.send("0\r\n\r\n");
    expect(await browser.ends()).toMatch(/0\r\n\r\n$/);
    expect(parsed(browser.text).headers.get("connection")).toBe("close");
  });

  test("a body over the limit is refused, whether it says so or not", async () => {
    const { ask } = await rig({ app: await echo(), limits: { bodyBytes: 10 } });
    expect(parsed(await ask(`POST / HTTP/1.1\r\nContent-Length: 11\r\n${KEEP}`)).status).toBe(413);
    const silent = httpApp((request) => void request.on("error", () => {}).resume());
    const { ask: askSilent } = await rig({ app: await silent, limits: { bodyBytes: 10 } });
    const chunked = `POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n${KEEP}b\r\nabcdefghijk\r\n`;
    expect(parsed(await askSilent(chunked)).status).toBe(413);
  });
});
