/** What programs in a machine are told and asked. */
import { beforeEach, describe, expect, test } from "vitest";
import { type GuestEvent, GuestEvents } from "../src/guest-events.ts";

/** Longer than any test; only a fault waits for it. */
const LONG_MS = 60_000;

let inside: GuestEvents;
beforeEach(() => {
  inside = new GuestEvents();
});

const forever = () => new AbortController().signal;

/** A program that listens, and what it heard. */
function program() {
  const heard: GuestEvent[] = [];
  const leave = inside.subscribe((event) => heard.push(event));
  const questions = () => heard.filter((event) => event.kind === "suspend").map((event) => event.id);
  return { heard, leave, questions, answer: () => inside.ready(questions().at(-1) ?? "") };
}

describe("starts", () => {
  test("a program that listens is told, and one that subscribes later learns of the last start", () => {
    const early = program();
    inside.started("cold", 0);
    inside.started("resume", 1234.6);
    const late = program();
    expect(early.heard).toEqual([
      { kind: "cold", slept_ms: 0 },
      { kind: "resume", slept_ms: 1235 },
    ]);
    expect(late.heard).toEqual([{ kind: "resume", slept_ms: 1235 }]);
    early.leave();
    inside.started("resume", -5); // the host's clock was set back meanwhile
    expect(early.heard).toHaveLength(2);
    expect(late.heard.at(-1)).toEqual({ kind: "resume", slept_ms: 0 });
  });
});

describe("a suspend to get ready for", () => {
  test("without listeners there is nothing to wait for", async () => {
    expect(await inside.askToGetReady(LONG_MS, forever())).toBe("ready");
  });

  test("every program is asked, and every answer is waited for", async () => {
    const [one, other] = [program(), program()];
    const asked = inside.askToGetReady(LONG_MS, forever());
    expect(one.heard).toEqual([{ kind: "suspend", id: expect.any(String), deadline_ms: LONG_MS }]);
    let settled = false;
    void asked.then(() => (settled = true));
    one.answer();
    one.answer(); // answering twice does not count for another program
    one.leave(); // nor does leaving count a second time
    await new Promise(setImmediate);
    expect(settled).toBe(false);
    other.answer();
    expect(await asked).toBe("ready");
  });

  test("a program that leaves without an answer is not waited for", async () => {
    const [one, other] = [program(), program()];
    const asked = inside.askToGetReady(LONG_MS, forever());
    one.answer();
    other.leave();
    expect(await asked).toBe("ready");
  });

  test("a program that subscribes meanwhile is not asked, and its leaving does not count as an answer", async () => {
    const one = program();
    const asked = inside.askToGetReady(LONG_MS, forever());
    const late = program();
    late.leave();
    let settled = false;
    void asked.then(() => (settled = true));
    await new Promise(setImmediate);
    expect(settled).toBe(false);
    expect(late.questions()).toEqual([]);
    one.answer();
    expect(await asked).toBe("ready");
  });

  test("without an answer the app is late, and an answer after that is refused", async () => {
    const one = program();
    expect(await inside.askToGetReady(1, forever())).toBe("late");
    expect(one.answer).toThrowError(expect.objectContaining({ code: "not_found" }));
    expect(() => inside.ready("something")).toThrowError(expect.objectContaining({ code: "not_found" }));
  });

  test("a start that cancels it ends the wait", async () => {
    program();
    const cancel = new AbortController();
    const asked = inside.askToGetReady(LONG_MS, cancel.signal);
    cancel.abort(new Error("a start was asked for"));
    await expect(asked).rejects.toThrow("a start was asked for");
    expect(await inside.askToGetReady(1, forever())).toBe("late"); // the next suspend asks again
  });

  test("each suspend asks again", async () => {
    const one = program();
    for (let count = 0; count < 3; count += 1) {
      const asked = inside.askToGetReady(LONG_MS, forever());
      one.answer();
      expect(await asked).toBe("ready");
    }
    expect(new Set(one.questions()).size).toBe(3);
  });
});

describe("replies that are being sent", () => {
  test("are waited for; those that were sent are not, and one that cannot be sent holds up nothing", async () => {
    const reply = Promise.withResolvers<void>();
    inside.awaitReply(Promise.resolve());
    inside.awaitReply(Promise.reject(new Error("the program is gone")));
    inside.awaitReply(reply.promise);
    let sent = false;
    const all = inside.repliesSent(forever()).then(() => (sent = true));
    await new Promise(setImmediate);
    expect(sent).toBe(false);
    reply.resolve();
    await all;
    await inside.repliesSent(forever());
  });

  test("that are never sent end with the signal", async () => {
    inside.awaitReply(new Promise(() => {}));
    await expect(inside.repliesSent(AbortSignal.abort(new Error("long enough")))).rejects.toThrow("long enough");
  });
});
