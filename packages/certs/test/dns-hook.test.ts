import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { tempFolder } from "../../platform/test/helpers/temp.ts";
import { addRecord } from "../src/dns-hook.ts";

test("a value that begins with a hyphen reaches the program, which need not take it for an option", async () => {
  const folder = await tempFolder("dns-hook");
  const program = join(folder, "hook");
  const calls = join(folder, "calls");
  const line = `"$1|$2|$3|$HIBERNAUT_DNS_ACTION|$HIBERNAUT_DNS_RECORD|$HIBERNAUT_DNS_VALUE"`;
  await writeFile(program, `#!/bin/sh\nprintf '%s\\n' ${line} >> ${calls}\n`, { mode: 0o700 });
  const record = { record: "_acme-challenge.example.com", value: "-nPsIwTo7o8BoG0" };
  const onTrouble = (name: string, reason: string) => expect.unreachable(`${name}: ${reason}`);
  const signal = new AbortController().signal;
  const remove = await addRecord({ program, timeoutMs: 10_000, onTrouble }, record, signal);
  await remove();
  const told = (action: string) => `${action}|${record.record}|${record.value}`;
  expect(await readFile(calls, "utf8")).toBe(["add", "remove"].map((one) => `${told(one)}|${told(one)}\n`).join(""));
});
