/** What a process has open when its machine is suspended is open after the resume, and continues where it was. */
import { expect, test } from "vitest";
import { longOr } from "../helpers/long.ts";
import { Place } from "../helpers/served.ts";
import { shellImage } from "../helpers/shell-image.ts";

const SLEEPS = longOr(5, 2);
const place = Place.forTests();
const image = await shellImage();

/**
 * Holds a file without a name, a child behind pipes, a connection to itself (Node waits for it by epoll), and a watch
 * (inotify). Each request uses all of them once more, and the reply says what they did.
 */
const HOLDER = `
  const fs = require("fs"), net = require("net"), { spawn } = require("child_process");
  const file = fs.openSync("/tmp/nameless", "a+");
  fs.unlinkSync("/tmp/nameless");
  const child = spawn("cat");
  const peer = net.createServer((socket) => socket.pipe(socket)).listen("/tmp/echo");
  const connection = net.connect("/tmp/echo");
  fs.mkdirSync("/tmp/watched");
  const watch = fs.watch("/tmp/watched");
  const next = (emitter, event) => new Promise((resolve) => emitter.once(event, (...values) => resolve(values)));
  let count = 0;
  require("http").createServer(async (request, response) => {
    count += 1;
    fs.writeSync(file, "line " + count + "\\n");
    const piped = next(child.stdout, "data"), echoed = next(connection, "data"), seen = next(watch, "change");
    child.stdin.write("pipe " + count);
    connection.write("echo " + count);
    fs.writeFileSync("/tmp/watched/file" + count, "");
    response.end(JSON.stringify({
      file: fs.readFileSync("/proc/self/fd/" + file, "utf8"),
      pipe: String(await piped), child: child.pid, echo: String(await echoed), watch: (await seen)[1],
    }));
  }).listen(8080);
`;

test("a file without a name, pipes, a connection and a watch work on after each sleep", async () => {
  const machine = await place.machine({ image, init: { exec: ["node", "-e", HOLDER] } });
  const use = async () => {
    const reply = await fetch(`http://${machine.private_address}:8080/`);
    return (await reply.json()) as Record<"file" | "pipe" | "echo" | "watch", string> & { child: number };
  };
  const { child } = await use();
  const lines = ["line 1"];
  for (let count = 2; count < 2 + SLEEPS; count += 1) {
    await place.suspend(machine.machine_id);
    await place.start(machine.machine_id);
    lines.push(`line ${count}`);
    expect(await use()).toEqual({
      file: lines.map((line) => `${line}\n`).join(""),
      pipe: `pipe ${count}`,
      child,
      echo: `echo ${count}`,
      watch: `file${count}`,
    });
  }
});
