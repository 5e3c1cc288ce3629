/** Plays one case through one proxy, and tells how it went. */
import { once } from "node:events";
import { connect } from "node:net";
import { RawClient, until } from "../http/helpers.ts";
import { type App, NEXT, PROBE } from "./app.ts";
import { type Case, get, type Outcome, type Step } from "./case.ts";
import { answerText, shown } from "./texts.ts";
import { type Message, readResponses, statusOf } from "./wire.ts";

type Event = Extract<Step, { event: unknown }>["event"];

/** Plays the case through the proxy on `port`, behind which the app is. */
export async function play(one: Case, port: number, app: App): Promise<Outcome> {
  app.play(one);
  const client = await connected(port);
  try {
    for (const step of one.client) await take(step, client, app);
    const { asks = ["GET"] } = one;
    const answers = () => readResponses(client.text, asks, client.ending === "end");
    const over = () => client.ending !== undefined || finals(answers()) >= asks.length;
    await until(over, `answers to ${asks.join(", ")}`);
    const after = await probe(client, answers);
    const texts = answers()
      .filter((answer) => answer.body !== PROBE)
      .map((answer) => answerText(answer, one.look ?? []));
    const last = answers().at(-1);
    if (last !== undefined && statusOf(last) === 101) texts.push(`tunnel ${shown(client.text.slice(last.end))}`);
    client.socket.destroy();
    const next = await nextClient(port);
    return { answers: texts, seen: app.seen, after, ...(next !== undefined && { next }) };
  } finally {
    client.socket.destroy();
    await app.dropConnections();
  }
}

async function connected(port: number): Promise<RawClient> {
  const socket = connect({ host: "127.0.0.1", port, noDelay: true, allowHalfOpen: true });
  await once(socket, "connect");
  return new RawClient(socket);
}

async function take(step: Step, client: RawClient, app: App): Promise<void> {
  if (typeof step === "string") client.send(step);
  else if ("slowly" in step) await client.sendSlowly(step.slowly);
  else if ("sees" in step) await until(() => client.ending !== undefined || client.text.includes(step.sees), step.sees);
  else await happen(step.event, client, app);
}

async function happen(event: Event, client: RawClient, app: App): Promise<void> {
  const { socket } = client;
  switch (event) {
    case "client ends":
      socket.end();
      return until(() => socket.writableFinished || socket.destroyed, "the client's end to be sent");
    case "app asked":
      return until(() => client.ending !== undefined || app.asked > 0, "a request to the app");
    case "app told":
      return app.told.resolve();
    case "app closes":
      return app.endConnections();
  }
}

function finals(answers: readonly Message[]): number {
  return answers.filter((answer) => (statusOf(answer) >= 200 || statusOf(answer) === 101) && answer.state !== "partial")
    .length;
}

/** Asks once more on the same connection. After a 101 it belongs to the other protocol, and is ended. */
async function probe(client: RawClient, answers: () => Message[]): Promise<Outcome["after"]> {
  const switched = answers().some((answer) => statusOf(answer) === 101);
  if (switched && client.socket.writable) client.socket.end();
  if (switched || !client.socket.writable) await until(() => client.ending !== undefined, "the end of the connection");
  if (client.ending !== undefined) return "closed";
  client.send(get(PROBE));
  const answered = () => answers().some((answer) => answer.body === PROBE && answer.state === "whole");
  await until(() => client.ending !== undefined || answered(), "an answer to the probe, or the end");
  return answered() ? "open" : "closed";
}

/** What a new client is answered; undefined when it is its own answer. All that is under way comes to its end before. */
async function nextClient(port: number): Promise<string | undefined> {
  const client = await connected(port);
  try {
    client.send(get(NEXT, "Connection: close\r\n"));
    await until(() => client.ending !== undefined, "the answer to the next client");
    const texts = readResponses(client.text, [], true).map((answer) => answerText(answer, []));
    return texts.join() === `200 ${NEXT}` ? undefined : texts.join();
  } finally {
    client.socket.destroy();
  }
}
