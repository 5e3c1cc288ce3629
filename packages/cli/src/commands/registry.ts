/** `hibernaut registry` */
import type { RegistryLogin } from "@hibernaut/client";
import { command, type Noun } from "../command.ts";
import { UsageError } from "../failure.ts";
import { LISTING, listText } from "../listing.ts";

const HOST = [
  { usage: "<host>", description: "as in image references: ghcr.io, host:5000, or docker.io for Docker Hub" },
];

/** A registry that there is a login for. */
const KNOWN_HOST = HOST.map((argument) => ({ ...argument, names: "registry" as const }));

const login = command({
  name: "login",
  summary: "Log in to a registry",
  description:
    "Reads the password, or a token in its place, from standard input, tries it at the registry, and stores it in the platform's data directory. No command shows it again.",
  arguments: HOST,
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
    const password = await readInput();
    if (password === "") throw new UsageError("Standard input is empty; the password is expected there.");
    const made = await (await context.client()).logInToRegistry(host, { username, password });
    return { document: made, text: `Logged in to ${made.host} as ${made.username}.` };
  },
});

const list = command({
  name: "list",
  aliases: ["ls"],
  summary: "List the registries that the platform is logged in to",
  options: LISTING,
  examples: ["hibernaut registry list"],
  async run(context, _args, options) {
    const logins = await (await context.client()).listRegistryLogins();
    const listing = {
      head: ["REGISTRY", "USER"],
      row: ({ host, username }: RegistryLogin) => [host, username],
      id: ({ host }: RegistryLogin) => host,
      empty: "No logins.",
    };
    return { document: logins, text: listText(logins, listing, options) };
  },
});

const logout = command({
  name: "logout",
  summary: "Log out of a registry",
  arguments: KNOWN_HOST,
  examples: ["hibernaut registry logout ghcr.io"],
  async run(context, [host = ""]) {
    await (await context.client()).logOutOfRegistry(host);
    return { document: { host, ok: true }, text: `Logged out of ${host}.` };
  },
});

/** Standard input without the newline at its end, which editors and `echo` add. */
async function readInput(): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of process.stdin as AsyncIterable<Buffer>) chunks.push(chunk);
  return Buffer.concat(chunks)
    .toString("utf8")
    .replace(/\r?\n$/, "");
}

/** The commands about registries. */
export const registry: Noun = {
  name: "registry",
  aliases: ["registries"],
  summary: "Manage logins for image registries",
  commands: [login, list, logout],
};
