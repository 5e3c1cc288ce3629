/** `hibernaut registry` */
import type { RegistryLogin } from "@hibernaut/client";
import { command, type Noun } from "../command.ts";
import { UsageError } from "../failure.ts";
import { listText, type ListOptions, QUIET } from "../listing.ts";

const HOST = [{ usage: "<host>", description: "as in images: ghcr.io, host:5000, docker.io for Docker Hub" }];

const login = command<{ username?: string; passwordStdin?: boolean }>({
  name: "login",
  summary: "Let the platform into a registry",
  description:
    "The password, or a token in its place, is read from standard input, proved at the registry, and kept in the platform's data folder. No command shows it again.",
  arguments: HOST,
  options: [
    { flags: "-u, --username <name>", description: "who the platform is there" },
    { flags: "--password-stdin", description: "read the password from standard input" },
  ],
  examples: ["hibernaut registry login ghcr.io -u me --password-stdin < token.txt"],
  async run(context, [host = ""], { username, passwordStdin }) {
    if (username === undefined) throw new UsageError("Who is it? Add -u NAME.");
    // Never as an option: command lines are in the list of processes and in the shell's history.
    if (passwordStdin !== true || process.stdin.isTTY)
      throw new UsageError("Give the password on standard input: add --password-stdin < FILE.");
    const password = await readInput();
    if (password === "") throw new UsageError("Standard input was empty, where the password should be.");
    const made = await (await context.client()).logInToRegistry(host, { username, password });
    return { document: made, text: `The platform is ${made.username} at ${made.host} now.` };
  },
});

const list = command<ListOptions>({
  name: "list",
  aliases: ["ls"],
  summary: "List the registries that the platform has a login for",
  options: [QUIET],
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
  summary: "Forget the login for a registry",
  arguments: HOST,
  examples: ["hibernaut registry logout ghcr.io"],
  async run(context, [host = ""]) {
    await (await context.client()).logOutOfRegistry(host);
    return { document: { host, ok: true }, text: `The platform has no login for ${host} any more.` };
  },
});

/** Standard input without the line's end, which editors and `echo` add. */
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
  summary: "Logins for registries of images",
  commands: [login, list, logout],
};
