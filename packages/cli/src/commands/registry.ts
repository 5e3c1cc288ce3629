/** `hibernaut registry` */
import { text } from "node:stream/consumers";
import { command, type Noun } from "../command.ts";
import { UsageError } from "../failure.ts";
import { listCommand } from "../listing.ts";

const HOST = {
  usage: "<host>",
  description: "as in image references: ghcr.io, host:5000, or docker.io for Docker Hub",
};

const login = command({
  name: "login",
  summary: "Log in to a registry",
  description:
    "Reads the password, or a token in its place, from standard input, tries it at the registry, and stores it in the platform's data directory. No command shows it again.",
  arguments: [HOST],
  options: [
    { flags: "-u, --username <name>", description: "user name at the registry" },
    { flags: "--password-stdin", description: "read the password from standard input" },
  ],
  examples: ["hibernaut registry login ghcr.io -u me --password-stdin < token.txt"],
  async run(context, [host = ""], { username, passwordStdin }) {
    if (username === undefined) throw new UsageError("No user name. Add -u NAME.");
    // Never as an option: command lines appear in the process list and in the shell's history.
    if (passwordStdin !== true || process.stdin.isTTY)
      throw new UsageError("Pass the password on standard input: add --password-stdin < FILE.");
    // Without the newline at its end, which editors and `echo` add.
    const password = (await text(process.stdin)).replace(/\r?\n$/, "");
    if (password === "") throw new UsageError("Standard input is empty; the password is expected there.");
    const made = await (await context.client()).logInToRegistry(host, { username, password });
    return { document: made, text: `Logged in to ${made.host} as ${made.username}.` };
  },
});

const list = listCommand({
  summary: "List the registries that the platform is logged in to",
  examples: ["hibernaut registry list"],
  fetch: (client) => client.listRegistryLogins(),
  show: () => ({
    head: ["REGISTRY", "USER"],
    row: ({ host, username }) => [host, username],
    id: ({ host }) => host,
    empty: "No logins.",
  }),
});

const logout = command({
  name: "logout",
  summary: "Log out of a registry",
  arguments: [{ ...HOST, names: "registry" }],
  examples: ["hibernaut registry logout ghcr.io"],
  async run(context, [host = ""]) {
    await (await context.client()).logOutOfRegistry(host);
    return { document: { host, ok: true }, text: `Logged out of ${host}.` };
  },
});

export const registry: Noun = {
  name: "registry",
  aliases: ["registries"],
  summary: "Manage logins for image registries",
  commands: [login, list, logout],
};
