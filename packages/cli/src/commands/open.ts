/** `hibernaut open` */
import { spawn } from "node:child_process";
import { once } from "node:events";
import type { Machine } from "@hibernaut/client";
import { hasService, urlsFrom } from "../answering.ts";
import { command } from "../command.ts";
import { CliError } from "../failure.ts";

/** Opens a browser where there is a desktop; otherwise the address is all that one can do. */
export const open = command({
  name: "open",
  summary: "Open an app in the browser",
  description: "Prints the address, and opens it if this is a terminal on a desktop. A sleeping app wakes.",
  arguments: [{ usage: "[path]", description: "path to open, such as /products (default: /)" }],
  ofApp: true,
  examples: ["hibernaut open --app shop", "hibernaut open /products --app shop"],
  async run(context, [path = "/"]) {
    const client = await context.client();
    const [app, machines] = await Promise.all([client.getApp(context.app), client.listMachines(context.app)]);
    if (!machines.some(hasService)) throw withoutService(context.app, machines[0]);
    const [address] = urlsFrom(client.apiUrl, app);
    if (address === undefined)
      throw new CliError(
        "failed_precondition",
        `App ${context.app} has no address that works from here. Give it a hostname: hibernaut hostnames add <hostname> --app ${context.app}`,
      );
    const url = new URL(path, address).href;
    const opened = context.json || !process.stdout.isTTY ? false : await openInBrowser(url);
    return { document: { url }, text: opened ? `Opened ${url}` : url };
  },
});

function withoutService(app: string, machine: Machine | undefined): CliError {
  const advice =
    machine === undefined
      ? `Create one with \`hibernaut machine run <image> --app ${app} --port <port>\`.`
      : `Give one a port with \`hibernaut machine update ${machine.name} --app ${app} --port <port>\`.`;
  return new CliError(
    "failed_precondition",
    `App ${app} has no machine with a service, so nothing answers at its address. ${advice}`,
  );
}

/** Whether a browser took it. */
async function openInBrowser(url: string): Promise<boolean> {
  if (process.env.DISPLAY === undefined && process.env.WAYLAND_DISPLAY === undefined) return false;
  const child = spawn("xdg-open", [url], { stdio: "ignore" });
  try {
    const [code] = (await once(child, "exit")) as [number | null];
    return code === 0;
  } catch {
    return false; // there is no xdg-open
  }
}
